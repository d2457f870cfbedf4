"""Counts what the tools use on the disk, as uid 1000: files in folders, and deleted files that are held open.

Each folder is opened from its parent, so that no path is too long. Every entry counts as some bytes, so the limit also bounds
the number of entries that a count reads.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import time

from .folder import enter, leave
from .layers import CHANGED_FILES, are_mounted
from .place import TOOL_UID, WORKSPACE
from .process import CHILD_GID

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Package caches, if sessions share them: a separate volume, which counts for each of those sessions.
CACHE_FOLDER = "/home/agent/.cache"
# An empty file takes an inode and a line in its folder.
SMALLEST_BYTES = 4096
# How long a count waits at most, in all, for processes that are just starting and cannot be inspected yet.
STARTING_SECONDS = 1
# Mappings that are not files on a disk, or are files in memory.
MEMORY_MAPS = ("/memfd:", "/dev/zero", "/dev/shm/", "/SYSV", "/tmp/", "/[")


def usage(request: dict[str, Any]):
    """`bytes`: counting stops above `most`. `unseen`: whether there may be files that cannot be counted."""
    tally = Tally(request["most"])
    unseen = False
    try:
        for place in [own_workspace(), *filter(os.path.ismount, [CACHE_FOLDER]), *writable_places()]:
            unseen |= tally.tree(place)
        for pid in tool_processes():
            unseen |= tally.held(pid)
    except Enough:
        pass
    return {"bytes": tally.bytes, "unseen": unseen, "seconds": time.process_time()}


def own_workspace():
    """Where the workspace's files are that are its own: a base is shared, and only what the session changed counts."""
    return CHANGED_FILES if are_mounted() else WORKSPACE


def workspace_bytes():
    """What they take on the disk."""
    tally = Tally(sys.maxsize)
    tally.tree(own_workspace())
    return tally.bytes


class Enough(Exception):
    """There are more bytes than the count was asked about."""


class Tally:
    """@raises Enough above `most` bytes, from whichever method"""

    def __init__(self, most: int):
        self.most = most
        self.bytes = 0
        # Device and inode of files with several names, or held open by several.
        self.several: set[tuple[int, int]] = set()
        self.in_memory = memory_devices()
        self.starting_seconds = STARTING_SECONDS

    def add(self, info: os.stat_result):
        """Counts a file."""
        size = info.st_blocks * 512
        if info.st_nlink != 1 and not stat.S_ISDIR(info.st_mode):
            key = (info.st_dev, info.st_ino)
            size = 0 if key in self.several else size
            self.several.add(key)
        self.bytes += max(size, SMALLEST_BYTES)
        if self.bytes > self.most:
            raise Enough

    def tree(self, place: str):
        """Counts the files below a folder. @returns whether a part cannot be inspected, for example because it is too deep"""
        try:
            device = os.lstat(place).st_dev
        except OSError:
            return False
        deep = False
        # From the outermost to the innermost: the folder, the mode to restore, its folders still to visit.
        opened: list[tuple[int | None, int | None, list[str]]] = [(None, None, [place])]
        try:
            while True:
                folder, mode, todo = opened[-1]
                if todo:
                    try:
                        opened.append(self.enter(todo.pop(), folder, device))
                    except OSError as error:
                        # Another owner's folder has none of the tools' files, and a removed one has none at all. The changes
                        # are mounted read only, so a folder that is closed to its owner stays closed.
                        deep = deep or error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EROFS)
                elif len(opened) > 1:
                    opened.pop()
                    leave(folder, mode)
                else:
                    return deep
        finally:
            for folder, mode, _ in reversed(opened[1:]):
                leave(folder, mode)

    def enter(self, name: str, parent: int | None, device: int):
        """Counts a folder's entries, also if its mode forbids reading. It stays open until everything below it is counted."""
        folder, mode = enter(name, parent, 0o500)
        try:
            inner: list[str] = []
            with os.scandir(folder) as entries:
                for item in entries:
                    try:
                        info = item.stat(follow_symlinks=False)
                    except OSError:
                        continue
                    self.add(info)
                    if stat.S_ISDIR(info.st_mode) and info.st_dev == device:
                        inner.append(item.name)
            return folder, mode, inner
        except BaseException:
            leave(folder, mode)
            raise

    def held(self, pid: int):
        """Counts deleted files that a process holds open. @returns whether it may hold some whose size cannot be seen: in a
        thread that cannot be inspected, in transit through a socket, in an io_uring, or only in a mapping"""
        counted: set[int] = set()
        unseen = False
        for thread in names_in(f"/proc/{pid}/task"):
            place = f"/proc/{pid}/task/{thread}"
            handles = self.handles(place)
            unseen |= handles is None
            for handle in handles or ():
                try:
                    info = os.stat(f"{place}/fd/{handle}")
                    if stat.S_ISREG(info.st_mode):
                        if info.st_nlink == 0 and info.st_dev not in self.in_memory:
                            counted.add(info.st_ino)
                            if (info.st_dev, info.st_ino) not in self.several:
                                self.add(info)
                    elif stat.S_ISSOCK(info.st_mode):
                        unseen |= carries_descriptors(f"{place}/fdinfo/{handle}")
                    elif stat.S_IFMT(info.st_mode) == 0:
                        unseen |= "io_uring" in os.readlink(f"{place}/fd/{handle}")
                except OSError:
                    # It was closed in between.
                    pass
        return unseen or maps_deleted_files(pid, counted)

    def handles(self, place: str) -> list[str] | None:
        """Open descriptors of a thread; None if it cannot be inspected even after it has had time to start."""
        while True:
            try:
                return os.listdir(f"{place}/fd")
            except PermissionError:
                if not is_alive(place):
                    return []
                if self.starting_seconds <= 0:
                    return None
                self.starting_seconds -= 0.01
                time.sleep(0.01)
            except OSError:
                return []


def carries_descriptors(path: str):
    """Whether a socket has descriptors in transit. @param path its file in fdinfo @raises OSError"""
    with open(path, "rb") as file:
        counts = [line.split()[1] for line in file if line.startswith(b"scm_fds:")]
    return any(count != b"0" for count in counts)


def maps_deleted_files(pid: int, counted: set[int]):
    """Whether a process maps deleted files besides those of these inodes. @param pid its id"""
    try:
        with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.endswith(" (deleted)\n"):
                    _, _, _, _, inode, path = line.split(maxsplit=5)
                    if not path.startswith(MEMORY_MAPS) and int(inode) not in counted:
                        return True
    except OSError:
        pass
    return False


def tool_processes():
    """Ids of all processes of the tools' user, including those that cannot be inspected; without our own children, which hide
    no files."""
    for name in names_in("/proc"):
        if name.isdigit():
            status = status_of(f"/proc/{name}")
            is_ours = status.get("Gid", "").split()[2:3] == [str(CHILD_GID)]
            if status.get("Uid", "").split()[:1] == [str(TOOL_UID)] and not is_ours and not is_over(status):
                yield int(name)


def status_of(place: str) -> dict[str, str]:
    """Fields of a process' or thread's `status`; none if it has ended."""
    try:
        with open(f"{place}/status", encoding="utf-8", errors="replace") as file:
            return {name: value.strip() for name, _, value in (line.partition(":") for line in file)}
    except OSError:
        return {}


def is_over(status: dict[str, str]):
    """Whether a process is a zombie, which holds nothing. One whose other threads still live is not over."""
    return status["State"][:1] in "ZX" and status.get("Threads") in (None, "1")


def is_alive(place: str):
    status = status_of(place)
    return bool(status) and status["State"][:1] not in "ZX"


def names_in(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def memory_devices():
    """The devices of /tmp and /dev/shm, which count as memory."""
    return {os.stat(place).st_dev for place in ("/tmp", "/dev/shm") if os.path.exists(place)}


def writable_places():
    """Folders of the image that uid 1000 may write to, two levels deep: its home, /var/tmp and the like."""
    root = os.stat("/").st_dev
    found: list[str] = []
    level = ["/"]
    for _ in range(2):
        folders: list[str] = []
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
                (found if os.access(path, os.W_OK, effective_ids=True) else level).append(path)
            except OSError:
                pass
    return found
