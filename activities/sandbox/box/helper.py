"""Children that wait, as uid 1000 already, for what they are to be: a program or a file operation.

Forking Python and dropping to uid 1000 takes 2-3 ms, exec alone 0.7 ms (measured), so one child is always kept ready.
Tools can kill and stop it, as anything of their uid: then what it did not begin is given to a new one. They cannot
look into it: a process that changed its uid is not dumpable. Part of the supervisor: see box-source.ts.
"""

import array
import binascii
import errno
import gc
import json
import os
import signal
import socket

WORKSPACE = "/workspace"
# A child that a tool stopped does not answer; it is killed and another one takes over.
ANSWER_SECONDS = 3.0
MAX_TRIES = 5
FILE_SECONDS = 60
CHUNK = 1 << 18


class Refused(Exception):
    """The command could not be started; the text is for the model."""


class Helper:
    """One child, good for one thing."""

    def __init__(self, pid, link):
        self.pid = pid
        self.link = link

    def wake(self):
        try:
            with as_tool():
                os.kill(self.pid, signal.SIGCONT)
        except OSError:
            pass

    def kill(self):
        try:
            with as_tool():
                os.kill(self.pid, signal.SIGKILL)
        except OSError:
            pass


def fork_helper():
    """@raises OSError where the box has no process left"""
    ours, theirs = socket.socketpair()
    try:
        pid = os.fork()
    except OSError:
        ours.close()
        theirs.close()
        raise
    if pid == 0:
        try:
            os.setsid()
            drop_for_good()
            ours.close()
            warm_up()
            serve(theirs)
        finally:
            os._exit(127)
    theirs.close()
    return Helper(pid, ours)


def serve(link):
    """In the child: takes one order, a line of JSON, and carries it out."""
    data, fds, _, _ = socket.recv_fds(link, CHUNK, 3)
    order = bytearray(data)
    while not order.endswith(b"\n"):
        data = link.recv(CHUNK)
        if not data:
            return
        order += data
    order = json.loads(order)
    if fds:
        become_program(link, order, fds)
    else:
        if "data" in order:
            order["data"] = binascii.a2b_base64(order["data"])
        signal.alarm(FILE_SECONDS)
        answer = {"q": order["q"], "ok": answer_file(order)}
        link.sendall(json.dumps(answer, default=base64_of).encode() + b"\n")


def become_program(link, order, fds):
    """Says + just before the program takes over, so that a child that was killed earlier is known to have done nothing;
    the link is closed by exec. After a - stands why not."""
    stage = order["cwd"]
    try:
        for target, fd in enumerate(fds):
            os.dup2(fd, target)
        os.chdir(order["cwd"])
        here = os.getcwd()
        if here != WORKSPACE and not here.startswith(WORKSPACE + "/"):
            raise OSError(errno.EXDEV, f"is outside {WORKSPACE}")
        stage = order["argv"][0]
        link.send(b"+")
        run_program(order["argv"], order["env"])
    except BaseException as error:
        text = error.strerror if isinstance(error, OSError) else str(error)
        link.send(b"-" + f"{stage}: {text}"[:1000].encode("utf-8", "replace"))


def run_program(argv, env):
    """Like os.execvpe, which imports a module first (1 ms in a child). @raises OSError"""
    name = argv[0]
    folders = [""] if "/" in name else env.get("PATH", os.defpath).split(":")
    trouble = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    for folder in folders:
        try:
            os.execve(os.path.join(folder, name), argv, env)
        except (FileNotFoundError, NotADirectoryError):
            pass
        except OSError as error:
            trouble = error
    raise trouble


def warm_up():
    """Walks the way to exec once in vain, so that the child's own copies of memory pages are made before the order."""
    order = json.loads(json.dumps({"argv": ["-"], "env": {}, "cwd": "/", "path": "-"}).encode())
    array.array("i", [0]).tobytes()
    try:
        os.chdir(order["cwd"])
        os.getcwd()
        run_program(["/-", order["path"]], {})
    except OSError:
        pass


class Helpers:
    """Keeps one child ready."""

    def __init__(self, loop):
        self.loop = loop
        self.ready = None
        # What a fork copies is not touched by the collector in the child.
        gc.freeze()

    def prepare(self):
        """To be called when nobody waits."""
        if self.ready is None:
            try:
                self.ready = fork_helper()
            except OSError:
                # A full box: tried again when one is needed.
                pass

    def take(self):
        """@raises OSError where the box has no process left"""
        helper, self.ready = self.ready or fork_helper(), None
        helper.wake()
        return helper

    def reaped(self, pid):
        if self.ready and self.ready.pid == pid:
            self.ready.link.close()
            self.ready = None

    def spawn(self, order, fds):
        """Pid of the program, which leads its own session. @raises Refused"""
        line = json.dumps(order).encode() + b"\n"
        for _ in range(MAX_TRIES):
            try:
                helper = self.take()
            except OSError as error:
                raise Refused(f"no process could be started: {error.strerror}; end some first") from error
            with helper.link as link:
                said = self.hand_over(link, line, fds)
            if b"-" in said:
                raise Refused(said.partition(b"-")[2].decode("utf-8", "replace"))
            if said:
                return helper.pid
            helper.kill()
        raise Refused("no process could be started: something in the box kills or stops every new one")

    @staticmethod
    def hand_over(link, line, fds):
        said = b""
        link.settimeout(ANSWER_SECONDS)
        try:
            sent = socket.send_fds(link, [line], fds)
            link.sendall(line[sent:])
            while data := link.recv(4096):
                said += data
        except OSError:
            # Killed or stopped: what it said before counts.
            pass
        return said
