"""The sandbox's main process: takes requests over a socket that only root can reach, starts commands as uid 1000 and records
how they ended. It outlives streams and workers; its records outlive it in files.

Requests and answers are JSON, one per line, many in progress at once: {"q": number, "op": …} is answered by {"q", "ok": …}
or {"q", "error": text}; a wait may get {"q", "bytes": n} before that. Bytes are encoded as base64.
"""

from __future__ import annotations

import binascii
import collections
import fcntl
import os
import re
import resource
import selectors
import signal
import socket
import time

from .child import Child, answer_line
from .client import Client, Waiter
from .command import CALLS, DEFAULT_MAX_OUTPUT_BYTES, SAVE_PREFIX, Command
from .disk import Disk
from .files import answer_file
from .forwarder import egress_listener, replace_ssh_in_git, start_forwarder
from .journal import Journal
from .loop import Loop
from .place import ATTACHED, HIGHEST_NUMBER, HOME, MARK_LIMIT, WORKSPACE
from .process import adopt_orphans, as_tool, open_workspace
from .reach import is_reachable
from .settings import apply_settings, own_isolation, tool_environment
from .terminal import Look

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

PROTOCOL = 1
SOCKET = f"{HOME}/control.sock"
MAX_READ_BYTES_OF_OUTPUT = 1 << 20
# Limit for the outputs of all ended commands except the newest: by then whole outputs are in the store.
MAX_ENDED_BYTES = 1 << 30
# Pause before a forwarder that has ended is restarted.
FORWARDER_PAUSE_SECONDS = 1
# Commands in the background that may run at once. Chosen: more than a project's servers, and a terminal each.
MOST_IN_BACKGROUND = 20
COMMAND_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,127}")


class Supervisor:
    """Its commands by their ids, running and ended, and the workers that are connected."""

    def __init__(self):
        self.loop = Loop()
        # Removed from the environment so that tools do not get it.
        token = os.environ.pop("LONGHAUL_EGRESS", None)
        self.egress = (egress_listener(), token) if token else None
        self.forwarder: int | None = None
        # Identifies this start of the sandbox: if it differs, a worker knows that all earlier processes are gone.
        self.boot = os.urandom(8).hex()
        self.base_env = tool_environment()
        hard = resource.getrlimit(MARK_LIMIT)[1]
        self.number = min(HIGHEST_NUMBER, hard) if hard != resource.RLIM_INFINITY else HIGHEST_NUMBER
        self.disk = Disk(self)
        self.commands: dict[str, Command] = {}
        self.ended: collections.deque[Command] = collections.deque()
        self.ended_bytes = 0
        # Running commands by process id. File operations are children too, but their exit codes do not matter.
        self.running: dict[int, Command] = {}
        if ATTACHED:
            self.settle_in()
        os.makedirs(CALLS, 0o700, exist_ok=True)
        os.chmod(HOME, 0o700)
        self.journal = Journal(f"{HOME}/journal")
        for record in self.journal.records():
            if "at" in record:
                command = Command(self, record["id"], record["limit"], record["at"])
                command.restore(None, {})
                self.commands[command.id] = command
            elif record["id"] in self.commands:
                self.commands[record["id"]].restore(record["end"], record["sizes"])
        for command in self.commands.values():
            self.add_ended(command)

    def settle_in(self):
        """Exits if the session's supervisor already runs, since two workers may start one. Numbers begin below those of an
        earlier supervisor, whose commands may still run."""
        os.makedirs(HOME, 0o700, exist_ok=True)
        self.lock = open(f"{HOME}/lock", "w")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os._exit(0)
        os.environ.pop("LONGHAUL_HOME", None)
        self.base_env.pop("LONGHAUL_HOME", None)
        self.number -= round(time.time() * 100) % (1 << 31)
        adopt_orphans()

    def next_number(self):
        """Lower than all before it: see MARK_LIMIT."""
        self.number -= 1
        return self.number

    def add_ended(self, command: Command):
        """Counts an ended command's output, which is deleted first if room is needed."""
        self.ended.append(command)
        self.ended_bytes += command.kept_bytes()
        self.trim_outputs()

    def trim_outputs(self):
        """Bounds the disk space of outputs: deletes those of the oldest ended commands first, and never the newest.
        @returns bytes kept for the tools' running commands: saves do not count, since their packs are bounded and short-lived"""
        tools = saves = 0
        for command in self.running.values():
            if command.id.startswith(SAVE_PREFIX):
                saves += command.kept_bytes()
            else:
                tools += command.kept_bytes()
        most = min(MAX_ENDED_BYTES, self.disk.limit or MAX_ENDED_BYTES)
        while self.ended_bytes + tools + saves > most and len(self.ended) > 1:
            oldest = self.ended.popleft()
            self.ended_bytes -= oldest.kept_bytes()
            for output in oldest.outputs.values():
                output.drop()
        return tools

    def handle(self, client: Client, request: dict[str, Any]):
        """Answers a request; what it raises is an answer too."""
        q = request["q"]
        try:
            answer = getattr(self, "do_" + request["op"])(client, request)
        except Exception as error:
            client.send({"q": q, "error": f"{type(error).__name__}: {error}"[:500]})
            return
        if answer is not None:
            client.send({"q": q, "ok": answer})

    def do_hello(self, client: Client, request: dict[str, Any]) -> dict[str, Any]:
        """The first request of a connection: sets limits and settings, probes addresses. Idempotent."""
        with as_tool():
            if not ATTACHED:
                open_workspace()
            empty = not os.listdir(WORKSPACE)
        if "disk" in request:
            self.disk.bound(request["disk"])
        if "settings" in request:
            self.base_env = {**tool_environment(), **apply_settings(request["settings"])}
        reachable = [address for address in request.get("probe", []) if is_reachable(address)]
        answer = {"protocol": PROTOCOL, "empty": empty, "boot": self.boot, "reachable": reachable}
        return {**answer, "isolation": own_isolation()}

    def do_ping(self, client: Client, request: dict[str, Any]) -> dict[str, Any]:
        return {}

    def do_start(self, client: Client, request: dict[str, Any]) -> dict[str, Any] | None:
        """Idempotent by `id`. Answers once the program runs, or with `wait` once it has ended."""
        name = request["id"]
        command = self.commands.get(name)
        if command is None:
            if not COMMAND_ID.fullmatch(name):
                raise ValueError(f"{name!r} is not a valid command id: use letters, digits, dots and dashes")
            if "stdin" in request:
                request["stdin"] = binascii.a2b_base64(request["stdin"])
            limit = request.get("maxOutputBytes", DEFAULT_MAX_OUTPUT_BYTES)
            command = Command(self, name, limit, round(time.time() * 1000))
            self.commands[name] = command
            command.background = bool(request.get("background"))
            if command.background and self.count_in_background() > MOST_IN_BACKGROUND:
                command.refuse(f"{MOST_IN_BACKGROUND} commands run in the background, as many as may: end one with kill_process")
            else:
                self.disk.before_start(lambda: command.start(request))
        if request.get("wait"):
            return self.follow(client, request, command)
        if command.started:
            return command.state()
        command.when_started.append(lambda: client.send({"q": request["q"], "ok": command.state()}))
        return None

    def count_in_background(self):
        return sum(command.background and not command.end for command in self.commands.values())

    def do_feed(self, client: Client, request: dict[str, Any]):
        """Answers once there is room for the next piece."""
        command = self.known(request)

        def done():
            client.send({"q": request["q"], "ok": {"taken": not command.end}})

        data = binascii.a2b_base64(request["data"])
        if command.terminal and "once" in request:
            command.terminal.typed(request["once"])
        command.input.take(command.input.offset_of(request), data, request["last"], done)

    def do_resize(self, client: Client, request: dict[str, Any]) -> dict[str, Any]:
        """Idempotent. Does nothing once the command has ended."""
        command, terminal = self.terminal_of(request)
        if not command.end:
            terminal.resize(request["rows"], request["cols"])
        return command.state()

    def do_look(self, client: Client, request: dict[str, Any]):
        """See Look. From then on, what it answers with is not new any more."""
        Look(client, request, *self.terminal_of(request))

    def terminal_of(self, request: dict[str, Any]):
        """@raises LookupError if there is no such command, or it has no terminal"""
        command = self.known(request)
        if command.terminal is None:
            raise LookupError(f"the command {request['id']!r} has no terminal")
        return command, command.terminal

    def do_wait(self, client: Client, request: dict[str, Any]) -> dict[str, Any] | None:
        """Answers once the command has ended, or after `waitMs`."""
        return self.follow(client, request, self.known(request))

    def follow(self, client: Client, request: dict[str, Any], command: Command):
        if command.end:
            return command.state()
        waiter = Waiter(client, request["q"], command, bool(request.get("progress")))
        if request.get("waitMs") is not None:
            self.loop.after(request["waitMs"] / 1000, waiter.finish)
        return None

    def do_unwait(self, client: Client, request: dict[str, Any]) -> dict[str, Any]:
        """Drops the request `of` without an answer."""
        waiter = client.waiters.get(request["of"])
        if waiter:
            waiter.finish(answer=False)
        return {}

    def do_read(self, client: Client, request: dict[str, Any]) -> dict[str, Any]:
        """At most `maxBytes` of the kept output from `offset`, in bytes."""
        output = self.known(request).outputs[request["stream"]]
        count = min(request["maxBytes"], MAX_READ_BYTES_OF_OUTPUT)
        return {"data": output.read(request["offset"], count)}

    def do_kill(self, client: Client, request: dict[str, Any]):
        """Answers once no process of the command is left. Idempotent."""
        command = self.known(request)
        waiter = Waiter(client, request["q"], command, False)
        command.kill("request", request["graceMs"])
        if command.end and not command.ending:
            waiter.finish()

    def do_state(self, client: Client, request: dict[str, Any]) -> dict[str, Any]:
        command = self.commands.get(request["id"])
        return {"state": command.state() if command else None}

    def do_discard(self, client: Client, request: dict[str, Any]) -> dict[str, Any]:
        """Deletes the outputs of an ended command."""
        command = self.known(request)
        if command.end:
            self.ended_bytes -= command.kept_bytes()
            for output in command.outputs.values():
                output.drop()
        return {}

    def do_list(self, client: Client, request: dict[str, Any]) -> dict[str, Any]:
        return {"states": [command.state() for command in self.commands.values()]}

    def known(self, request: dict[str, Any]):
        """@raises LookupError if there is no such command"""
        command = self.commands.get(request["id"])
        if command is None:
            raise LookupError(f"no command was ever started under the id {request['id']!r} in this sandbox")
        return command

    def do_file(self, client: Client, request: dict[str, Any]):
        """In a child, so that a slow disk holds up nobody else. See files.py."""

        def fail(text: str):
            message = f"{request['path']}: {text}"
            client.send({"q": request["q"], "ok": {"ok": False, "reason": "failed", "message": message}})

        def finished(line: bytes):
            if line.endswith(b"\n"):
                client.send_line(line)
            else:
                fail("the operation was ended before it was done")

        def go():
            try:
                self.fork(answer_file, request, finished)
            except OSError as error:
                fail(f"no process could be started: {error.strerror}; end some first")

        if request["do"] == "write":
            self.disk.before_start(go)
        else:
            go()

    def fork(self, operation: Callable[[dict[str, Any]], object], request: dict[str, Any], finished: Callable[[bytes], None]):
        """Runs `operation(request)` in a child with the tools' rights; `finished` gets the answer as a line, or a part of it if
        the child was killed. @raises OSError if no process can be had"""
        most = self.disk.file_limit()
        return Child(self.loop, lambda link: answer_line(link, operation, request, most), finished)

    def forward(self):
        """Starts the forwarder to the egress proxy, if the sandbox has one."""
        if self.egress is not None:
            self.forwarder = start_forwarder(*self.egress)

    def reap(self):
        """Takes the exit status of every child that has ended."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self.forwarder:
                self.loop.after(FORWARDER_PAUSE_SECONDS, self.forward)
            command = self.running.pop(pid, None)
            if command:
                command.reaped(status)

    def run(self):
        """Never returns."""
        if self.egress is not None:
            replace_ssh_in_git()
            self.forward()
        wakeup_reader, wakeup_writer = socket.socketpair()
        wakeup_reader.setblocking(False)
        wakeup_writer.setblocking(False)
        signal.set_wakeup_fd(wakeup_writer.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.signal(signal.SIGTERM, lambda number, frame: os._exit(0))
        signal.signal(signal.SIGINT, signal.SIG_IGN)

        def woken():
            wakeup_reader.recv(4096)
            self.reap()

        self.loop.watch(wakeup_reader, selectors.EVENT_READ, woken)
        if os.path.exists(SOCKET):
            os.unlink(SOCKET)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(SOCKET)
        os.chmod(SOCKET, 0o600)
        listener.listen(64)
        self.loop.watch(listener, selectors.EVENT_READ, lambda: Client(self, listener.accept()[0]))
        self.loop.run()


if __name__ == "__main__":
    Supervisor().run()
