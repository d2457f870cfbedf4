"""One command: started once, watched, and ended with all processes it left."""

from __future__ import annotations

import binascii
import fcntl
import json
import os
import selectors
import signal
import sys
import time
import zlib

from .child import Child, become_program
from .ending import Ending
from .input import Input
from .loader import code_of
from .loop import CHUNK
from .output import Output, Side, Turns
from .place import HOME, MARK, folder_of
from .terminal import TERMINAL_NAME, Terminal, read_chunk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .client import Waiter
    from .supervisor import Supervisor

CALLS = f"{HOME}/calls"
DEFAULT_MAX_OUTPUT_BYTES = 64 << 20
# A child that still holds the pipe may be about to write the last line (`cmd | tee`).
DRAIN_SECONDS = 0.2
# Output of children that outlive the command is read at this interval and dropped, so that a server gets no SIGPIPE.
IDLE_DRAIN_SECONDS = 0.1
TIMEOUT_GRACE_MS = 1000
# Ids of the programs that save and restore the workspace (workspace-program.ts) begin so: ids of tools' commands have no dash.
SAVE_PREFIX = "ws-"
# Compiled programs of ours, by their text. Compiling the program that saves the workspace takes 10 ms.
compiled: dict[str, tuple[str, dict[str, Any]]] = {}


def program_in(request: dict[str, Any], env: dict[str, str]):
    """The program of ours that a child runs itself: its main module's name, and compiled modules. None for a command that is
    executed. To start an interpreter for it took 18 of the 20 ms of processor time of a save that found nothing changed
    (2026-11)."""
    variable = request.get("program")
    # Where names of files are decoded otherwise, only an interpreter with the command's environment has the right encoding.
    if variable is None or sys.getfilesystemencoding() != "utf-8":
        return None
    text = env.pop(variable)
    if text not in compiled:
        main, modules, _ = json.loads(zlib.decompress(binascii.a2b_base64(text)))
        compiled[text] = main, {name: code_of(name, modules) for name in modules}
    return compiled[text]


def signal_name(number: int):
    """`SIGTERM` for 15; `SIG64` for one that has no name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"


class Command:
    """Running, or ended: exited, killed, refused or lost."""

    def __init__(self, supervisor: Supervisor, name: str, limit: int, started_ms: int):
        self.supervisor = supervisor
        self.loop = supervisor.loop
        self.id = name
        self.started_ms = started_ms
        self.limit = limit
        # None if it was started before the sandbox's last restart: then none of its processes are left.
        self.number: int | None = None
        self.outputs: dict[str, Output] = {stream: Output(f"{CALLS}/{name}.{stream}", limit) for stream in ("out", "err")}
        # The process that becomes the program.
        self.child: Child | None = None
        self.pid: int | None = None
        self.end: dict[str, Any] | None = None
        self.ending: Ending | None = None
        self.status: int | None = None
        self.pipes: dict[int, Output | Side] = {}
        self.input = Input(self.loop)
        self.terminal: Terminal | None = None
        # Counted among those that may run in the background at once.
        self.background = False
        # Descriptors of both ends of its pipes, until the program runs.
        self.opened: list[int] = []
        self.listeners: list[Waiter] = []
        # Facts about the disk, if it was full when the command began, or if the disk limit ended the command.
        self.disk: dict[str, Any] | None = None
        self.started = False
        self.when_started: list[Callable[[], object]] = []

    def restore(self, end: dict[str, Any] | None, sizes: dict[str, tuple[int, int]]):
        """After a restart of the sandbox. Without a record of its end the command is lost, and its output's size unknown."""
        self.end = end or {"kind": "lost"}
        self.input.end()
        self.started = True
        for stream, output in self.outputs.items():
            try:
                size = os.stat(output.path).st_size
            except OSError:
                size = 0
            total, kept = sizes.get(stream, (size, size))
            # If there is no file, the output was deleted to make room.
            self.outputs[stream] = Output(output.path, self.limit, total, kept if size else 0)

    def kept_bytes(self):
        """Bytes of its outputs that are on the disk."""
        return sum(output.kept for output in self.outputs.values())

    def state(self) -> dict[str, Any]:
        """As the worker gets it: sizes in bytes, times in ms, `pid` while it runs."""
        out, err = self.outputs["out"], self.outputs["err"]
        answer: dict[str, Any] = {
            "id": self.id,
            "startedAtMs": self.started_ms,
            "outBytes": out.total,
            "errBytes": err.total,
            "outKept": out.kept,
            "errKept": err.kept,
        }
        if "turns" in self.outputs:
            turns = self.outputs["turns"]
            answer.update(turnsBytes=turns.total, turnsKept=turns.kept)
        answer.update(self.end or {"kind": "running", "pid": self.pid})
        if self.terminal:
            answer["terminal"] = self.terminal.facts()
        if self.disk:
            answer["disk"] = self.disk
        return answer

    def start(self, request: dict[str, Any]):
        """Starts its program. What goes wrong is its end (`refused`), not an error."""
        if self.end:
            # It was killed while it waited for the disk count.
            return
        self.began = time.monotonic()
        self.number = self.supervisor.next_number()
        disk = self.supervisor.disk
        self.disk = disk.facts() if disk.full else None
        try:
            self.supervisor.journal.started(self)
            if "terminal" in request:
                self.open_terminal(request["terminal"])
            else:
                self.open_streams(request)
        except OSError as error:
            self.refuse(error.strerror or str(error))
            return
        env: dict[str, str] = {**self.supervisor.base_env, **(request.get("env") or {}), MARK: self.id}
        if self.terminal:
            env["TERM"] = TERMINAL_NAME
        if self.id.startswith(SAVE_PREFIX):
            # Use the image's Python, not one that a tool has put first on the path.
            env["PATH"] = os.environ.get("PATH", os.defpath)
        order = {
            "argv": request["argv"],
            "program": program_in(request, env),
            "env": env,
            "cwd": folder_of(request.get("cwd")),
            "fileBytes": disk.file_limit(),
            "number": self.number,
            "terminal": self.terminal is not None,
        }
        try:
            self.child = Child(self.loop, lambda link: become_program(link, order, self.given), self.launched, self.given)
        except OSError as error:
            self.refuse(f"no process could be started: {error.strerror}; end some first")
            return
        self.pid = self.child.pid
        self.supervisor.running[self.pid] = self
        timeout = request.get("timeoutMs")
        if timeout is not None and not self.end:
            self.loop.after(timeout / 1000, lambda: self.kill("timeout", TIMEOUT_GRACE_MS))

    def open_streams(self, request: dict[str, Any]):
        """Opens the pipes: the child's ends go to `given`, ours to `input` and `pipes`."""

        def pipe():
            reader, writer = os.pipe()
            self.opened.extend((reader, writer))
            return reader, writer

        if self.input.begin(request.get("stdin") or b"", request.get("more", False)):
            stdin, self.input.fd = pipe()
        else:
            stdin = os.open("/dev/null", os.O_RDONLY)
            self.opened.append(stdin)
        out_reader, out_writer = pipe()
        self.pipes[out_reader] = self.outputs["out"]
        err_writer = out_writer
        if request.get("tellApart"):
            err_reader, err_writer = pipe()
            turns = self.outputs["turns"] = Turns(f"{CALLS}/{self.id}.turns")
            for number, fd in enumerate((out_reader, err_reader)):
                self.pipes[fd] = Side(number, self.outputs["out"], turns)
        elif not request.get("mergeOutput"):
            err_reader, err_writer = pipe()
            self.pipes[err_reader] = self.outputs["err"]
        self.given = [stdin, out_writer, err_writer]
        self.watch_pipes()

    def open_terminal(self, size: dict[str, int]):
        """Opens a terminal, which is all three of the child's streams: what is typed into it is its input."""
        self.terminal = terminal = Terminal(size, self.input)
        self.opened.extend((terminal.master, terminal.slave))
        self.pipes[terminal.master] = self.outputs["out"]
        self.input.begin(b"", more=True)
        # Closed apart from the other.
        self.input.fd = os.dup(terminal.master)
        self.input.keeps = True
        self.opened.append(self.input.fd)
        self.given = [terminal.slave] * 3
        self.watch_pipes()

    def watch_pipes(self):
        """Reads from our ends of the pipes from now on."""
        # Watched before the program runs: then the pipe that is filled first is read first.
        for fd in self.pipes:
            os.set_blocking(fd, False)
            try:
                fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, CHUNK)
            except OSError:
                pass
            self.loop.watch(fd, selectors.EVENT_READ, lambda fd=fd: self.pump(fd))

    def launched(self, said: bytes):
        """Called with what the child wrote: see `become_program`."""
        if b"-" in said:
            self.refuse(said.partition(b"-")[2].decode("utf-8", "replace"))
        elif not said and not self.ending:
            self.refuse("no process could be started: the new one was killed at once")
        else:
            self.follow()

    def follow(self):
        """Called once the program runs."""
        for fd in set(self.given):
            os.close(fd)
        self.opened = []
        self.input.flow()
        self.notify_started()

    def refuse(self, reason: str):
        """Ends a command whose program never ran."""
        for fd in self.pipes:
            self.loop.unwatch(fd)
        if self.terminal:
            self.terminal.close()
        for fd in self.opened:
            os.close(fd)
        if self.pid is not None:
            self.supervisor.running.pop(self.pid, None)
        self.opened, self.pipes, self.input.fd = [], {}, None
        self.finish({"kind": "refused", "reason": reason})

    def notify_started(self):
        """Answers who waits for its start."""
        self.started = True
        calls, self.when_started = self.when_started, []
        for call in calls:
            call()

    def pump(self, fd: int):
        """Reads one chunk of output. True if there may be more."""
        try:
            data = read_chunk(fd)
        except BlockingIOError:
            return False
        if data:
            self.pipes[fd].add(data)
            for listener in self.listeners:
                listener.progress()
            return True
        self.close_pipe(fd)
        if not self.pipes and self.status is not None:
            self.conclude()
        return False

    def close_pipe(self, fd: int):
        """Called at the end of an output."""
        self.loop.unwatch(fd)
        if self.terminal:
            self.terminal.close()
        os.close(fd)
        self.pipes.pop(fd).close()

    def reaped(self, status: int):
        """Its first process has ended; the command has ended once its pipes are read."""
        if not self.started:
            # The closing of the child's link has not been handled yet.
            if self.child is not None:
                self.child.collect()
            if self.end:
                return
        self.status = status
        self.duration = time.monotonic() - self.began
        for fd in list(self.pipes):
            # Bounded by a pipe's size, so that a surviving child that writes without pause cannot keep us here.
            for _ in range(4):
                if not self.pump(fd):
                    break
        if self.pipes:
            self.loop.after(DRAIN_SECONDS, self.conclude)
        else:
            self.conclude()

    def conclude(self):
        """Ends the command, once its pipes are read and, if it is being killed, none of its processes are left."""
        if self.end or self.status is None or (self.ending and not self.ending.swept):
            return
        by = self.ending.by if self.ending else "signal"
        if by == "disk":
            self.disk = self.supervisor.disk.reached
        killed = os.WIFSIGNALED(self.status)
        if killed or self.ending:
            name = signal_name(os.WTERMSIG(self.status)) if killed else "SIGTERM"
            end = {"kind": "killed", "by": by, "signal": name}
        else:
            end = {"kind": "exited", "exitCode": os.WEXITSTATUS(self.status)}
        self.finish({**end, "durationMs": round(self.duration * 1000)})

    def finish(self, end: dict[str, Any]):
        """Ends the command: records how, and answers all who wait for it."""
        for output in [*self.pipes.values(), *self.outputs.values()]:
            output.close()
        self.end = end
        if self.ending and self.ending.swept:
            # Otherwise a repeated kill, whose first answer was lost, would wait for a sweep that is over.
            self.ending = None
        self.input.end()
        self.supervisor.add_ended(self)
        self.supervisor.journal.ended(self)
        for fd in self.pipes:
            self.loop.unwatch(fd)
        self.drop_leftovers()
        self.notify_started()
        self.notify_ended()

    def kill(self, by: str, grace_ms: float):
        """TERM to the group, KILL after the grace period, then sweeps until no process is left. Also kills the processes that
        an ended command left."""
        if by == "timeout" and self.end:
            return
        if self.ending:
            self.ending.hasten(grace_ms)
            return
        if self.end and self.end["kind"] in ("refused", "lost"):
            return
        if self.pid is None and not self.end:
            self.refuse("it was killed before it began")
            return
        self.ending = Ending(self, by, grace_ms)
        self.ending.advance()

    def swept(self):
        """Called once none of its processes are left, or they cannot be ended."""
        if self.end:
            self.ending = None
            self.notify_ended()
        elif self.pipes:
            # A process outside the family may still hold the pipe.
            self.loop.after(DRAIN_SECONDS, self.conclude)
        self.conclude()

    def notify_ended(self):
        """Answers who waits for its end."""
        for listener in list(self.listeners):
            listener.finish()

    def drop_leftovers(self):
        """Reads and drops what its surviving processes write, as long as there are any."""
        for fd in list(self.pipes):
            try:
                if not read_chunk(fd):
                    self.close_pipe(fd)
            except BlockingIOError:
                pass
        if self.pipes:
            self.loop.after(IDLE_DRAIN_SECONDS, self.drop_leftovers)
