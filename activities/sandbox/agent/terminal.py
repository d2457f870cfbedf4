"""A command's terminal: a PTY that belongs to the tools' user, and requests to look at what it shows."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import struct
import termios
import time

from .client import Waiter
from .loop import CHUNK
from .output import TAIL_BYTES
from .process import as_tool
from .reading import waits_for_input

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .client import Client
    from .command import Command
    from .input import Input

# What the worker draws understands this terminal's sequences.
TERMINAL_NAME = "xterm-256color"
# Opens the other side of a PTY. Source: asm-generic/ioctls.h, Linux 4.13.
TIOCGPTPEER = 0x5441
# How often it is found out whether a program waits for input: that reads the state of every process.
ASK_SECONDS = 0.25


class Terminal:
    """Sizes in characters, places in bytes of the command's output. @raises OSError if no PTY can be had"""

    def __init__(self, size: dict[str, int], typed: Input):
        with as_tool():
            # Programs open their terminal again by its name: it must be theirs.
            self.master, self.slave = os.openpty()
        self.device = os.fstat(self.slave).st_rdev
        self.input = typed
        self.size = size["rows"], size["cols"]
        self.resize(*self.size)
        # Up to where the worker has looked, and up to where it had when a piece of input came, by the piece's name.
        self.seen = 0
        self.seen_before: dict[str, int] = {}

    def resize(self, rows: int, cols: int):
        """Programs in the foreground get SIGWINCH, if it changes. Idempotent."""
        if self.master >= 0:
            fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("4H", rows, cols, 0, 0))

    def facts(self) -> dict[str, Any]:
        """Its size (programs may have changed it; the last known one, once it is closed), and what it has not taken."""
        if self.master >= 0:
            self.size = struct.unpack("4H", fcntl.ioctl(self.master, termios.TIOCGWINSZ, bytes(8)))[:2]
        return {"rows": self.size[0], "cols": self.size[1], "unreadBytes": len(self.input.rest)}

    def modes(self) -> dict[str, Any]:
        """Whether what is typed is shown (by the kernel), and whether a program gets whole lines."""
        if self.master < 0:
            return {}
        flags = termios.tcgetattr(self.master)[3]
        return {"echoes": bool(flags & termios.ECHO), "takesLines": bool(flags & termios.ICANON)}

    def has_unread(self):
        """Whether what was typed has not been read by a program."""
        if self.input.rest:
            return True
        try:
            other = fcntl.ioctl(self.master, TIOCGPTPEER, os.O_RDWR | os.O_NOCTTY)
        except OSError:
            # An older kernel, or no program has it open any more.
            return False
        try:
            return struct.unpack("i", fcntl.ioctl(other, termios.FIONREAD, bytes(4)))[0] > 0
        except OSError:
            return False
        finally:
            os.close(other)

    def typed(self, name: str):
        """Called before a named piece of input is written."""
        self.seen_before.setdefault(name, self.seen)

    def close(self):
        """Called once nothing is read from it any more."""
        self.facts()
        self.master = -1


def take_terminal():
    """Makes standard input the controlling terminal of this process, which leads its session."""
    for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU):
        signal.signal(number, signal.SIG_DFL)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def read_chunk(fd: int):
    """Empty at the end; a PTY's is an error: no program has it open any more. @raises BlockingIOError if there is nothing yet"""
    try:
        return os.read(fd, CHUNK)
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        return b""


class Look(Waiter):
    """A request that is answered once the terminal was silent for `quietMs`, or for `askMs` while a program waits for input; when
    the command has ended; or after `waitMs`."""

    def __init__(self, client: Client, request: dict[str, Any], command: Command, terminal: Terminal):
        super().__init__(client, request["q"], command, False)
        self.terminal = terminal
        self.name: str | None = request.get("once")
        self.peeks = bool(request.get("isPeek"))
        self.quiet = request["quietMs"] / 1000
        self.ask = request["askMs"] / 1000 if "askMs" in request else self.quiet
        self.heard_at = time.monotonic()
        client.supervisor.loop.after(request["waitMs"] / 1000, self.finish)
        self.check()

    def progress(self):
        self.heard_at = time.monotonic()

    def check(self):
        """Looks whether the terminal has settled, and arranges to look again."""
        if self.done:
            return
        if self.command.end:
            self.finish()
            return
        silent = time.monotonic() - self.heard_at
        if silent >= self.quiet or (silent >= self.ask and self.waits()):
            self.finish()
            return
        nearest = self.ask - silent if silent < self.ask else min(ASK_SECONDS, self.quiet - silent)
        self.client.supervisor.loop.after(max(0.01, nearest), self.check)

    def waits(self):
        """None if it cannot be found out."""
        if self.terminal.master < 0 or self.terminal.has_unread():
            return False
        return waits_for_input(self.terminal.master, self.terminal.device)

    def answer(self) -> dict[str, Any]:
        """The newest output, at most 1 MiB, and what is known about the terminal at this moment."""
        output = self.command.outputs["out"]
        start = max(0, output.kept - TAIL_BYTES)
        data = output.read(start, TAIL_BYTES)
        whole = output.cut is None
        before = self.terminal.seen_before.get(self.name, self.terminal.seen) if self.name else self.terminal.seen
        if not self.peeks:
            self.terminal.seen = output.total
        return {
            "state": self.command.state(),
            "data": data,
            "dataFrom": output.total - len(data) if whole else start,
            "newFrom": before,
            "waits": self.waits(),
            **self.terminal.modes(),
        }
