"""Bounds what tools put on the host's disk: Docker has no limit that works on every engine. Part of the supervisor: see
box-source.ts.

Free space is asked for (2 µs) four times a second while something runs; only when it has shrunk are files counted, by a
child as uid 1000. Over the limit what runs is ended, and what is started from then on can make no file grow, so that
deleting is all it can do. One file alone can never exceed the limit: the kernel refuses that at once.
"""

import os
import signal
import stat
import time

TICK_SECONDS = 0.25
# Counting takes at most so small a share of a processor.
REST_SHARE = 20
# On a busy host others may free what we take.
RECOUNT_SECONDS = 20
# Shrinking by so small a part of the limit is worth a count.
NOTABLE_PART = 16
GIVE_UP_SECONDS = 20
# An empty file takes an inode and a line in its folder.
SMALLEST_BYTES = 4096
# Longest that a command waits for the count when the disk was full.
START_WAIT_SECONDS = 10


class Disk:
    def __init__(self, box):
        self.box = box
        self.limit = None
        self.floor = 0
        self.used = 0
        self.free = 0
        self.room = None
        self.full = False
        # As things stood when all was ended.
        self.reached = None
        self.ticking = False
        self.counting = False
        self.counted_at = 0.0
        self.count_seconds = 0.0
        # Bytes and files, with which a count begins anew when they shrink.
        self.room_when_counted = None
        self.waiting = []
        self.outdated = False

    def bound(self, order):
        self.limit = order["bytes"]
        self.floor = order["freeBytes"]

    def file_limit(self):
        """Bytes that one file may have; None where nothing is bounded."""
        return 0 if self.full else self.limit

    def facts(self):
        return {"usedBytes": self.used, "limitBytes": self.limit, "freeBytes": self.free}

    def look(self):
        """Whether the host has too little left."""
        self.free, self.room = room_left()
        if self.room_when_counted is None:
            self.room_when_counted = self.room
        return self.free < self.floor

    def before_start(self, start):
        """Calls `start` once it is known whether files may grow: at once, but where they might not last time."""
        if self.limit is None:
            start()
            return
        if not self.ticking:
            self.ticking = True
            self.box.loop.after(TICK_SECONDS, self.tick)
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
        self.box.loop.after(START_WAIT_SECONDS, once)
        # A count under way may have begun before something was deleted.
        self.outdated = self.counting
        self.count()

    def tick(self):
        short = self.look()
        now = time.monotonic()
        shrunk = max(then - left for then, left in zip(self.room_when_counted, self.room))
        rested = now - self.counted_at > self.count_seconds * REST_SHARE
        if short and not self.full:
            self.overrun()
        elif rested and (shrunk > self.limit // NOTABLE_PART or now - self.counted_at > RECOUNT_SECONDS):
            self.count()
        busy = bool(self.box.running) or self.counting or (not self.full and anybody())
        self.ticking = busy
        if busy:
            self.box.loop.after(TICK_SECONDS, self.tick)

    def count(self):
        if self.counting:
            return
        self.counting = True
        self.counted_at = time.monotonic()
        self.look()
        room = self.room

        def counted(answer):
            self.counting = False
            self.room_when_counted = room
            self.used = (answer or {}).get("bytes", self.used)
            self.count_seconds = (answer or {}).get("seconds", 0.1)
            if self.outdated:
                self.outdated = False
                self.count()
                return
            over = self.used > self.limit or self.look()
            if over and not self.full:
                self.overrun()
            self.full = over
            waiting, self.waiting = self.waiting, []
            for start in waiting:
                start()

        self.box.ask_child({"do": "usage", "path": ".", "most": self.limit}, counted)

    def overrun(self):
        """Ends all there is, since nobody can say who wrote: what runs is told why, what was left behind just goes."""
        self.full = True
        self.reached = self.facts()
        for command in list(self.box.running.values()):
            command.kill("disk", 0)
        with as_tool():
            try:
                # Signals neither us nor the first process.
                os.kill(-1, signal.SIGKILL)
            except OSError:
                pass


def room_left():
    """Free bytes on the tightest of our disks; and what must not shrink unnoticed: bytes and files of each."""
    found = [os.statvfs(place) for place in (WORKSPACE, "/")]
    free = [info.f_bavail * info.f_frsize for info in found]
    return min(free), (*free, *(info.f_favail * SMALLEST_BYTES for info in found))


def anybody():
    """Whether a process of the tools' uid is there but the child kept ready."""
    count = 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                count += os.stat(f"/proc/{name}").st_uid == TOOL_UID
            except OSError:
                pass
    return count > 1


def usage(request):
    """As uid 1000: bytes on the disk of what it can write to, and of files it has deleted but holds open. Stops at
    `most`."""
    tally = Tally(request["most"])
    try:
        for place in [WORKSPACE, *writable_places()]:
            tally.folder(place)
        tally.deleted()
    except Enough:
        pass
    finally:
        tally.close_again()
    return {"bytes": tally.bytes, "seconds": time.process_time()}


class Enough(Exception):
    pass


class Tally:
    def __init__(self, most):
        self.most = most
        self.bytes = 0
        self.several = set()
        self.opened = []
        self.end = time.monotonic() + GIVE_UP_SECONDS

    def add(self, info):
        if info.st_nlink != 1 and not stat.S_ISDIR(info.st_mode):
            key = (info.st_dev, info.st_ino)
            if key in self.several:
                return
            self.several.add(key)
        self.bytes += max(info.st_blocks * 512, SMALLEST_BYTES)
        if self.bytes > self.most or time.monotonic() > self.end:
            raise Enough

    def folder(self, place):
        try:
            device = os.lstat(place).st_dev
        except OSError:
            return
        todo = [place]
        while todo:
            path = todo.pop()
            for item in self.items_of(path):
                try:
                    info = item.stat(follow_symlinks=False)
                except OSError:
                    continue
                self.add(info)
                if stat.S_ISDIR(info.st_mode) and info.st_dev == device:
                    todo.append(item.path)

    def items_of(self, path):
        """What is in a folder, also in one that its owner has closed: opened till the count is over."""
        try:
            try:
                entries = os.scandir(path)
            except PermissionError:
                mode = stat.S_IMODE(os.lstat(path).st_mode)
                os.chmod(path, mode | 0o500)
                self.opened.append((path, mode))
                entries = os.scandir(path)
            with entries:
                yield from entries
        except OSError:
            # Gone, or not ours.
            pass

    def close_again(self):
        for path, mode in reversed(self.opened):
            try:
                os.chmod(path, mode)
            except OSError:
                pass

    def deleted(self):
        memory = memory_devices()
        for name in os.listdir("/proc"):
            if not name.isdigit():
                continue
            try:
                for item in os.scandir(f"/proc/{name}/fd"):
                    info = os.stat(item.path)
                    if stat.S_ISREG(info.st_mode) and info.st_nlink == 0 and info.st_dev not in memory:
                        self.add(info)
            except OSError:
                # Ended, or not ours.
                pass


def memory_devices():
    """Of /tmp and /dev/shm, which count as memory."""
    found = set()
    for place in ("/tmp", "/dev/shm"):
        try:
            found.add(os.stat(place).st_dev)
        except OSError:
            pass
    return found


def writable_places():
    """Folders of the image that uid 1000 may write to, two levels deep: its home, /var/tmp and the like."""
    root = os.stat("/").st_dev
    found = []
    level = ["/"]
    for _ in range(2):
        folders = []
        for parent in level:
            try:
                with os.scandir(parent) as entries:
                    folders.extend(item.path for item in entries if item.is_dir(follow_symlinks=False))
            except OSError:
                pass
        level = []
        for path in folders:
            try:
                if path == WORKSPACE or os.lstat(path).st_dev != root:
                    continue
                (found if os.access(path, os.W_OK) else level).append(path)
            except OSError:
                pass
    return found


FILE_OPERATIONS["usage"] = usage
