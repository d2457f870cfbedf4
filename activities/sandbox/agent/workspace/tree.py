"""The workspace's tree: walked from open folders, listed, compared.

A listing maps each path to its value: `kind mode size mtime/ctime`, a NUL, a link's target. Paths and names are bytes. That of a
workspace with a base has only what differs from it, and REMOVED for what the base has and the workspace does not.
"""

import os
import stat
import zlib

from ..folder import enter, leave

# File times advance by the kernel's tick, at most 10 ms: a second write within the same tick does not change them.
TICK_NS = 20_000_000
MAX_LOOKS = 3
MAX_LISTING_BYTES = 256 << 20
REMOVED = b"w 0 0 \0"
UNBOUNDED = {"entries": 1 << 60, "listingBytes": 1 << 60, "pathBytes": 1 << 60, "fileBytes": 1 << 60, "bytes": 1 << 60}


class Lost(Exception):
    """A saved workspace cannot be read back."""


def tree_order(path):
    """A sort key that puts a folder directly before its contents, so that each folder is opened once."""
    return path.replace(b"/", b"\0")


class Folders:
    """The open folders on the way to a path. Nothing is looked up by a path: tools may replace names at any time, and paths
    may be longer than the kernel accepts. In tree order every folder is opened once. `levels`: the same folder in the layers of
    a workspace with a base."""

    def __init__(self, need, make=False, levels=None):
        self.need = need
        self.make = make
        self.levels = levels
        self.stack = [(b"", *enter(b".", None, need))]

    def open(self, path):
        while (top := self.stack[-1][0]) and top != path and not path.startswith(top + b"/"):
            self.leave()
        while (top := self.stack[-1][0]) != path:
            start = len(top) + 1 if top else 0
            end = path.find(b"/", start)
            here = path if end < 0 else path[:end]
            self.stack.append((here, *self.enter(here[start:], self.stack[-1][1])))
        return self.stack[-1][1]

    def of(self, path):
        """@returns the open folder that a path lies in, and its name there"""
        parent, _, name = path.rpartition(b"/")
        return self.open(parent), name

    def enter(self, name, parent):
        if self.make:
            make_folder(name, parent, 0o755)
        opened = enter(name, parent, self.need)
        if self.levels:
            self.levels.enter(name)
        return opened

    def leave(self):
        _, folder, mode = self.stack.pop()
        leave(folder, mode)
        if self.levels:
            self.levels.leave()

    def close(self):
        while self.stack:
            self.leave()


def make_folder(name, parent, mode):
    """Makes a folder of this name, replacing anything else of that name."""
    try:
        os.mkdir(name, mode, dir_fd=parent)
    except FileExistsError:
        if not stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
            os.unlink(name, dir_fd=parent)
            os.mkdir(name, mode, dir_fd=parent)


def value_of(info, target=b""):
    """The value of a file, folder or link; None for sockets, pipes and devices, which have no content to save."""
    mode = stat.S_IMODE(info.st_mode)
    if stat.S_ISREG(info.st_mode):
        mtime, ctime = divmod(info.st_mtime_ns, 10**9), divmod(info.st_ctime_ns, 10**9)
        return b"f %o %d %d.%09d0/%d.%09d0\0" % (mode, info.st_size, *mtime, *ctime)
    if stat.S_ISDIR(info.st_mode):
        return b"d %o 0 \0" % mode
    return b"l 777 0 \0" + target if stat.S_ISLNK(info.st_mode) else None


def fields(value):
    """@returns kind, mode, size, mtime, ctime, target"""
    head, _, target = value.partition(b"\0")
    kind, mode, size, times = head.split(b" ")
    mtime, _, ctime = times.partition(b"/")
    return kind, mode, int(size), mtime, ctime, target


def uncertain(value):
    """The same value, marked as uncertain: the file may have changed since."""
    return value.partition(b"/")[0] + b"/?\0"


def is_same(before, now, use_ctime=True):
    if before is None:
        return False
    if before == now and not before.endswith(b"/?\0"):
        return True
    kind, mode, size, mtime, ctime, target = fields(before)
    other = fields(now)
    if (kind, target) != (other[0], other[5]) or (kind != b"l" and mode != other[1]):
        return False
    if kind != b"f":
        return True
    # A value that a client packed has no ctime.
    may_differ = use_ctime and ctime and other[4] and (ctime == b"?" or ctime != other[4])
    return (size, mtime) == other[2:4] and not may_differ


def read_listing(data, most):
    """Reads a stored listing of at most `most` bytes. @returns it, and what was missing in it: path -> reason. @raises Lost"""
    entries, rest = read_member(data, most)
    missing = read_member(rest, most)[0] if rest else {}
    return entries, {path: value.partition(b"\0")[2].decode() for path, value in missing.items()}


def read_member(data, most):
    inflate = zlib.decompressobj(31)
    try:
        text = inflate.decompress(data, most)
    except zlib.error as error:
        raise Lost(f"a list of files is damaged: {error}") from None
    if not inflate.eof:
        raise Lost("a list of files is cut off or too long")
    entries, parts = {}, text.split(b"\0")
    for at in range(0, len(parts) - 1, 2):
        kind, mode, size, times, path = parts[at].split(b" ", 4)
        entries[path] = b"%b %b %b %b\0%b" % (kind, mode, size, times, parts[at + 1])
    return entries, inflate.unused_data


def written_listing(entries, missing):
    """The listing in its stored form, in pieces. What is missing follows as a second gzip member."""
    yield from written_member(entries)
    if missing:
        yield from written_member({path: b"x 0 0 \0" + reason.encode() for path, reason in missing.items()})


def written_member(entries):
    deflate = zlib.compressobj(3, zlib.DEFLATED, 31)
    for path in sorted(entries):
        head, _, target = entries[path].partition(b"\0")
        if piece := deflate.compress(b"%b %b\0%b\0" % (head, path, target)):
            yield piece
    yield deflate.flush()
