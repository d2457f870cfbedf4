"""Forked children with the tools' rights: a command's program, or one file operation."""

from __future__ import annotations

import errno
import os
import resource
import selectors
import signal
import sys

from .client import line_of
from .loader import run
from .loop import CHUNK
from .place import ATTACHED, MARK_LIMIT, WORKSPACE
from .process import as_tool, become_tool, kill_now, open_workspace, take_tool_rights
from .terminal import take_terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from .loop import Loop

FILE_SECONDS = 60
# The supervisor has priority when processors are busy: with 32 programs spinning on two processors, a start and a kill take
# 0.08 s instead of 0.22 (at most 0.5 instead of 1.9, eight at a time). Priorities among programs do not change.
TOOL_NICE = 10


class Child:
    """Runs `task(link)` in a forked process that keeps only the descriptors `keep`. Once the link is closed, because the process
    has ended or become a program, `finished(output)` is called with what the task wrote to it. @raises OSError if no process can
    be had"""

    def __init__(self, loop: Loop, task: Callable[[int], None], finished: Callable[[bytes], None], keep: Iterable[int] = ()):
        self.loop = loop
        self.finished = finished
        self.output = bytearray()
        self.link, writer = os.pipe()
        try:
            self.pid = os.fork()
        except OSError:
            os.close(self.link)
            os.close(writer)
            raise
        if self.pid == 0:
            try:
                os.setsid()
                keep_only({writer, *keep})
                take_tool_rights()
                task(writer)
            finally:
                os._exit(127)
        os.close(writer)
        os.set_blocking(self.link, False)
        loop.watch(self.link, selectors.EVENT_READ, self.collect)

    def collect(self):
        """Reads what the task wrote, as far as it is there."""
        while True:
            try:
                data = os.read(self.link, CHUNK)
            except BlockingIOError:
                return
            if not data:
                break
            self.output += data
        self.loop.unwatch(self.link)
        os.close(self.link)
        self.finished(bytes(self.output))

    def kill(self):
        """Kills the child, with the tools' rights. Does nothing if it has ended."""
        with as_tool():
            kill_now(self.pid)


def keep_only(kept: set[int]):
    """Closes all other descriptors of the supervisor: if this child kept the write end of another command's input, that
    command would not see the end of its input."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) not in kept:
            try:
                os.close(int(name))
            except OSError:
                # The descriptor of the listing itself.
                pass


def limit_file_size(most: int | None):
    """Limits the size of files that this process writes, in bytes; None: no limit."""
    if most is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))


def become_program(link: int, order: dict[str, Any], fds: list[int]):
    """Writes + just before it becomes the program, which closes the link; on failure - and the reason."""
    stage = order["cwd"]
    try:
        limit_file_size(order["fileBytes"])
        set_number(order["number"])
        for target, fd in enumerate(fds):
            os.dup2(fd, target)
        if order["terminal"]:
            take_terminal()
        if not ATTACHED:
            open_workspace()
        os.chdir(order["cwd"])
        here = os.getcwd()
        if here != WORKSPACE and not here.startswith(WORKSPACE + "/"):
            raise OSError(errno.EXDEV, f"is outside {WORKSPACE}")
        stage = order["argv"][0]
        os.nice(TOOL_NICE)
        os.write(link, b"+")
        become_tool()
        if order["program"] is None:
            os.execvpe(order["argv"][0], order["argv"], order["env"])
        for fd in {link, *fds}:
            os.close(fd)
    except BaseException as error:
        text = error.strerror if isinstance(error, OSError) else str(error)
        os.write(link, b"-" + f"{stage}: {text}"[:1000].encode("utf-8", "replace"))
        return
    run_program(order["program"], order["env"])


def run_program(program: tuple[str, dict[str, Any]], env: dict[str, str]):
    """Runs one of our own programs in this process as a new interpreter would, and ends the process with its exit code. Tools
    cannot read its memory, which has parts of the supervisor's: a process that changed its uid is not dumpable."""
    status = 1
    try:
        # An interpreter sets these at its start.
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_IGN)
        os.environ.clear()
        os.environ.update(env)
        sys.stdin = open(0, encoding="utf-8", errors="surrogateescape")
        sys.stdout = open(1, "w", encoding="utf-8", errors="surrogateescape")
        sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace")
        run(*program)
        status = 0
        sys.stdout.flush()
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else 1
    except BaseException as error:
        status = 1
        sys.excepthook(type(error), error, error.__traceback__)
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(status)


def set_number(number: int):
    """Marks this process and all that it starts with the number of their command."""
    try:
        resource.setrlimit(MARK_LIMIT, (number, number))
    except (OSError, ValueError):
        # A kernel without this limit: the mark in the environment remains.
        pass


def answer_line(link: int, operation: Callable[[dict[str, Any]], object], request: dict[str, Any], most: int | None):
    """Writes what `operation(request)` returns as the answer to the request."""
    limit_file_size(most)
    # Exceeding the file size limit must be an error to report, not end this process.
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    signal.alarm(FILE_SECONDS)
    if not ATTACHED:
        open_workspace()
    answer = {"q": request.get("q"), "ok": operation(request)}
    line = memoryview(line_of(answer))
    while line:
        line = line[os.write(link, line) :]
