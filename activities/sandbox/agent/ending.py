"""Ends a command and all processes that it left."""

from __future__ import annotations

import os
import signal
import time

from .place import ATTACHED, MARK
from .process import as_tool, family, kill_now

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .command import Command

POLL_SECONDS = 0.01
# After this many sweeps in a row that each found new processes (a fork bomb that calls setsid), all processes of the tools'
# uid are killed. A bomb grows back within 20 ms, and then a sweep takes 70-200 ms (measured).
BOMB_SWEEPS = 3
# A process that has not died within 5 s hangs in the kernel; it must not delay the answer to the worker.
GIVE_UP_SWEEPS = 500


class Ending:
    """How one command is ended: advances by itself until none of its processes are left, then calls `command.swept()`."""

    def __init__(self, command: Command, by: str, grace_ms: float):
        self.command = command
        # Who or what ends it.
        self.by = by
        self.deadline = time.monotonic() + grace_ms / 1000
        self.begun = False
        self.swept = False
        # The process id of its first process, while that is not reaped.
        self.leader: int | None = None
        # Its processes, pid -> start time, as last found.
        self.known = {}
        self.sweeps = 0
        # Sweeps in a row that found new processes.
        self.grown = 0

    def hasten(self, grace_ms: float):
        """Shortens the grace period, never prolongs it."""
        self.deadline = min(self.deadline, time.monotonic() + grace_ms / 1000)

    def advance(self):
        """One step; arranges the next one itself."""
        command = self.command
        overdue = time.monotonic() >= self.deadline
        if not command.started:
            # Before exec the child does not have all its marks, so a sweep might not find it.
            if overdue and command.child is not None:
                # A tool may have stopped it just before it became the program.
                command.child.kill()
            self.again(POLL_SECONDS)
            return
        if not self.begun:
            self.begin()
        if not overdue and self.signal_group(0):
            self.again(POLL_SECONDS)
            return
        found, is_new = self.sweep()
        if found and self.sweeps < GIVE_UP_SWEEPS:
            self.again(0 if is_new else POLL_SECONDS)
            return
        self.swept = True
        command.swept()

    def again(self, seconds: float):
        """Advances after so many seconds."""
        self.command.loop.after(seconds, self.advance)

    def begin(self):
        """TERM to the group, if the command's first process still runs."""
        command = self.command
        self.begun = True
        # Once the process is reaped, another one may get its id.
        self.leader = command.pid if command.status is None and not command.end else None
        if self.leader is not None:
            # Before parents end: a child with another environment and session can only be found through its parents.
            self.find_family()
            # As when a terminal is closed: shells that people type into ignore TERM.
            for number in (signal.SIGHUP, signal.SIGCONT) if command.terminal else ():
                self.signal_group(number)
            self.signal_group(signal.SIGTERM)

    def find_family(self):
        """@returns its processes, pid -> start time"""
        with as_tool():
            mark = f"{MARK}={self.command.id}".encode()
            self.known = family(mark, self.command.number, self.leader, self.known)
        return self.known

    def signal_group(self, number: int):
        """False when the group is empty."""
        if self.leader is None:
            return False
        try:
            with as_tool():
                os.killpg(self.leader, number)
            return True
        except ProcessLookupError:
            return False
        except PermissionError:
            return True

    def sweep(self):
        """Kills all its processes that are found. @returns them, and whether there are new ones among them"""
        before = self.known
        found = self.find_family()
        self.signal_group(signal.SIGKILL)
        is_new = any(before.get(pid) != born for pid, born in found.items())
        # The first sweep always finds new processes.
        self.grown = self.grown + 1 if is_new and self.sweeps > 0 else 0
        self.sweeps += 1
        with as_tool():
            for pid in found:
                kill_now(pid)
            # In someone else's container that would kill the owner's processes too.
            if self.grown >= BOMB_SWEEPS and not ATTACHED:
                kill_now(-1)
        return found, is_new
