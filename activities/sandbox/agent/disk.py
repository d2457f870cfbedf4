"""Limits what a sandbox writes to the host's disk: Docker has no limit that works on every engine.

Free space is checked (2 µs) four times a second while a process of the tools runs. When it has shrunk, a child counts the
files as uid 1000 (usage.py). If something cannot be counted (a process that cannot be inspected, descriptors in transit
through a socket, a count that failed), all space that the disk has lost since no process of the tools ran counts instead.
Over the limit everything that runs is killed, and commands started after that cannot make a file grow: they can only delete.
No single file can exceed the limit: the kernel refuses that at once.
"""

from __future__ import annotations

import json
import os
import time

from .place import WORKSPACE
from .process import as_tool, kill_now
from .usage import SMALLEST_BYTES, tool_processes, usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .supervisor import Supervisor

TICK_SECONDS = 0.25
# Counting takes at most 1/REST_SHARE of a processor's time.
REST_SHARE = 20
# On a busy host others may free as much space as we take, so that it does not shrink. Files are therefore counted at least this
# often. The second figure applies once the tools' processes have ended: a count takes 12 ms of processor time, 6 % of two
# processors in 200 sandboxes whose commands are short (2026-11). The third one applies when the disk is nearly full.
RECOUNT_SECONDS = 20
RECOUNT_ENDED_SECONDS = 60
RECOUNT_SHORT_SECONDS = 1
# Files are counted once free space has shrunk by 1/NOTABLE_PART of the limit.
NOTABLE_PART = 16
# If the host's disk is nearly full, a sandbox that grew by less than this is left alone.
GROWN_BYTES = 16 << 20
# After this long, the disk's loss is used without waiting for the count.
PATIENCE_SECONDS = 20
# How long a command waits at most for a new count when the disk was full.
START_WAIT_SECONDS = 10


class Disk:
    """Sizes in bytes, times in seconds of the monotonic clock."""

    def __init__(self, supervisor: Supervisor):
        self.supervisor = supervisor
        self.limit: int | None = None
        self.floor = 0
        self.free = 0
        self.room: tuple[int, ...] = ()
        # Bytes as last counted, and with what could not be counted.
        self.seen = 0
        self.used = 0
        # Room and bytes counted when last no process of the tools ran: then nothing can be hidden.
        self.settled_room: tuple[int, ...] = ()
        self.settled_seen: int | None = None
        self.full = False
        # Whether everything was killed because of the limit, and the facts at that moment.
        self.ended = False
        self.reached: dict[str, Any] | None = None
        self.ticking = False
        self.counting = False
        self.counted_at = 0.0
        self.count_seconds = 0.0
        self.room_when_counted: tuple[int, ...] = ()
        self.waiting: list[Callable[[], object]] = []
        self.outdated = False

    def bound(self, order: dict[str, Any]):
        """Sets the limits: `bytes` that the tools may use, `freeBytes` that the host's disk should keep."""
        first = self.limit is None
        self.limit = order["bytes"]
        self.floor = order["freeBytes"]
        if first:
            self.look()
            self.settled_room = self.room_when_counted = self.room
            self.count()

    def file_limit(self):
        """Bytes that one file may have; None if there is no limit."""
        return 0 if self.full else self.limit

    def facts(self) -> dict[str, Any]:
        """As the worker gets them, in bytes."""
        unseen = max(0, self.used - self.seen)
        return {"usedBytes": self.used, "unseenBytes": unseen, "limitBytes": self.limit, "freeBytes": self.free}

    def look(self):
        """Reads how much the disks have free: 2 µs."""
        self.free, self.room = room_left()

    def before_start(self, start: Callable[[], object]):
        """Calls `start` once it is known whether files may grow: at once, unless the disk was full at the last count."""
        if self.limit is None:
            start()
            return
        if not self.ticking:
            self.ticking = True
            self.supervisor.loop.after(TICK_SECONDS, self.tick)
        if not self.full:
            start()
            return
        done = False

        def once():
            nonlocal done
            if not done:
                done = True
                start()

        self.waiting.append(once)
        self.supervisor.loop.after(START_WAIT_SECONDS, once)
        # A count in progress may have begun before files were deleted.
        self.outdated = self.counting
        self.count()

    def tick(self):
        """Decides whether to count, four times a second while a process of the tools runs."""
        if self.limit is None:
            return
        self.look()
        now = time.monotonic()
        shrunk = loss(self.room_when_counted, self.room)
        alive = bool(self.supervisor.running) or any(tool_processes())
        recount = RECOUNT_SECONDS if alive else RECOUNT_ENDED_SECONDS
        if self.free < self.floor:
            recount = RECOUNT_SHORT_SECONDS
        since = now - self.counted_at
        over = self.seen + self.supervisor.trim_outputs() > self.limit
        if self.counting:
            if since > PATIENCE_SECONDS:
                self.judge(self.seen, True)
        elif since > self.count_seconds * REST_SHARE and (over or shrunk > self.limit // NOTABLE_PART or since > recount):
            self.count()
        if not alive and not self.counting:
            self.settle()
        self.ticking = alive or self.counting
        if self.ticking:
            self.supervisor.loop.after(TICK_SECONDS, self.tick)

    def settle(self):
        """No process of the tools runs: from here on, what the disks lose may be theirs."""
        self.settled_room, self.settled_seen = self.room, self.seen

    def count(self):
        """Counts the files in a child, and judges what it found. Does nothing while a count is under way."""
        if self.counting:
            return
        self.counting = True
        self.counted_at = time.monotonic()
        self.look()
        room = self.room

        def counted(line: bytes):
            self.counting = False
            self.room_when_counted = room
            # If the count fails, the disk's loss is used instead.
            answer: dict[str, Any] = {"bytes": self.seen, "unseen": True, "seconds": 0.1}
            if line.endswith(b"\n"):
                answer = json.loads(line)["ok"]
            self.count_seconds = answer["seconds"]
            if self.outdated:
                self.outdated = False
                self.count()
                return
            self.look()
            self.judge(answer["bytes"], answer["unseen"])
            waiting, self.waiting = self.waiting, []
            for start in waiting:
                start()

        try:
            self.supervisor.fork(usage, {"most": self.limit}, counted)
        except OSError:
            counted(b"")

    def judge(self, counted: int, unseen: bool):
        """Ends everything if the limit is reached. @param counted bytes @param unseen whether there may be more that cannot be
        counted"""
        self.seen = counted
        if self.settled_seen is None:
            self.settled_seen = counted
        grown = max(0, counted - self.settled_seen)
        hidden = max(0, loss(self.settled_room, self.room) - grown) if unseen else 0
        outputs = self.supervisor.trim_outputs()
        self.used = counted + outputs + hidden
        short = self.free < self.floor
        over = self.limit is not None and self.used > self.limit
        if not self.ended and (over or (short and grown + outputs + hidden > GROWN_BYTES)):
            self.overrun()
        self.full = over or short
        self.ended = self.ended and self.full

    def overrun(self):
        """Kills everything, since the writer cannot be identified. Running commands report why."""
        self.ended = True
        self.reached = self.facts()
        for command in list(self.supervisor.running.values()):
            command.kill("disk", 0)
        with as_tool():
            kill_now(-1)


def room_left():
    """Free bytes on the fullest of our disks; and the values that are watched for shrinking: free bytes and files of each."""
    found = [os.statvfs(place) for place in (WORKSPACE, "/")]
    free = [info.f_bavail * info.f_frsize for info in found]
    return min(free), (*free, *(info.f_favail * SMALLEST_BYTES for info in found))


def loss(before: tuple[int, ...], now: tuple[int, ...]):
    """@returns how much the value that shrank most has lost, in bytes"""
    return max(then - left for then, left in zip(before, now))
