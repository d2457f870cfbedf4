"""Children that wait, as uid 1000 already, for what they are to be: a program or a file operation.

Forking Python and dropping to uid 1000 takes 2-3 ms, exec alone 0.7 ms (measured), so one child is always kept ready.
Tools can kill and stop it, as anything of their uid: what it did not begin is given to a new one, a stopped one is
woken. They cannot
look into it: a process that changed its uid is not dumpable. Part of the supervisor: see box-source.ts.
"""

import array
import binascii
import errno
import gc
import json
import os
import resource
import selectors
import signal
import socket
import time

STIR_SECONDS = 0.25
MAX_TRIES = 5
FILE_SECONDS = 60
# Programs stand behind the supervisor and file operations where processors are short: with 32 that spin on two, a start and a
# kill take 0.08 s instead of 0.22 (0.5 instead of 1.9 at most, eight at a time). Among each other it changes nothing.
TOOL_NICE = 10
CHUNK = 1 << 18


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
            keep_only(theirs)
            drop_for_good()
            warm_up()
            serve(theirs)
        finally:
            os._exit(127)
    theirs.close()
    return Helper(pid, ours)


def keep_only(link):
    """In the child: what the supervisor has open is none of its business. The write end of another command's input, held
    here too, would leave that command waiting for the end of what it reads."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) != link.fileno():
            try:
                os.close(int(name))
            except OSError:
                # The listing's own.
                pass


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
    most = order.pop("fileBytes", None)
    if most is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    number = order.pop("number", None)
    if number is not None:
        set_number(number)
    open_workspace()
    if fds:
        become_program(link, order, fds)
    else:
        if "data" in order:
            order["data"] = binascii.a2b_base64(order["data"])
        # Too large a file is an error to tell of, not our end.
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        signal.alarm(FILE_SECONDS)
        answer = {"q": order["q"], "ok": answer_file(order)}
        link.sendall(json.dumps(answer, default=base64_of).encode() + b"\n")


def set_number(number):
    try:
        resource.setrlimit(MARK_LIMIT, (number, number))
    except (OSError, ValueError):
        # A kernel that has no such limit: the mark in the environment remains.
        pass


def become_program(link, order, fds):
    """Says + just before the program takes over, so that a child that was killed earlier is known to have done nothing;
    the link is closed by exec. After a - stands why not."""
    stage = order["cwd"]
    try:
        for target, fd in enumerate(fds):
            os.dup2(fd, target)
        # A second handle on its output would keep a pipe open that the program and its children have let go of.
        for fd in fds:
            if fd > 2:
                os.close(fd)
        os.chdir(order["cwd"])
        here = os.getcwd()
        if here != WORKSPACE and not here.startswith(WORKSPACE + "/"):
            raise OSError(errno.EXDEV, f"is outside {WORKSPACE}")
        stage = order["argv"][0]
        os.nice(TOOL_NICE)
        link.send(b"+")
        run_program(order["argv"], order["env"])
    except BaseException as error:
        text = error.strerror if isinstance(error, OSError) else str(error)
        link.send(b"-" + f"{stage}: {text}"[:1000].encode("utf-8", "replace"))


def run_program(argv, env):
    """Like os.execvpe, which imports a module first (1 ms in a child). @raises OSError"""
    name = argv[0]
    # Saves and restores are run by the Python that the image has, not by one that a tool put first on its path.
    path = os.environ if "LONGHAUL_WORKSPACE" in env else env
    folders = [""] if "/" in name else path.get("PATH", os.defpath).split(":")
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

    def give(self, line, fds, finished):
        """Hands an order to a child; `finished(said)` is called once the child let go of its link: it ended, or exec
        closed it. The caller's descriptors are his again then. @raises OSError where the box has no process left"""
        helper = self.take()
        link, loop = helper.link, self.loop
        link.setblocking(False)
        rest, said = memoryview(line), bytearray()

        def hand_over():
            nonlocal rest
            try:
                if len(rest) == len(line):
                    rest = rest[socket.send_fds(link, [rest], fds) :]
                while rest:
                    rest = rest[link.send(rest) :]
            except BlockingIOError:
                return
            except OSError:
                # It was killed.
                pass
            loop.unwatch(link)
            loop.watch(link, selectors.EVENT_READ, collect)

        def collect():
            try:
                data = link.recv(CHUNK)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if data:
                said.extend(data)
                return
            loop.unwatch(link)
            link.close()
            finished(bytes(said))

        def stir():
            # A tool may have stopped it, and its own alarm does not ring then.
            if link.fileno() >= 0:
                if time.monotonic() > deadline:
                    helper.kill()
                helper.wake()
                loop.after(STIR_SECONDS, stir)

        deadline = time.monotonic() + FILE_SECONDS
        loop.after(STIR_SECONDS, stir)
        loop.watch(link, selectors.EVENT_WRITE, hand_over)
        hand_over()
        return helper
