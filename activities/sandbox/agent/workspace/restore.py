"""Restores the workspace to a save."""

import errno
import os
import re
import time
import zlib

from ..folder import FOLDER, enter
from ..layers import are_mounted
from .save import BLOCK, MAX_REPORTED, MAX_ROUNDS
from .survey import Survey
from .tracked import bring_back
from .tree import (
    MAX_LISTING_BYTES,
    REMOVED,
    TICK_NS,
    UNBOUNDED,
    Folders,
    Lost,
    fields,
    is_same,
    make_folder,
    read_listing,
    tree_order,
    uncertain,
    written_listing,
)

CHUNK = 1 << 18
STAGE = ".longhaul-restore-"
# A lock of a git that was at work when its files were saved. No git is at work in what is restored.
LOCK = re.compile(rb"(^|/)\.git/.*\.lock$", re.S)


class Unpacked:
    """The content of a gzipped part, at most `most` bytes. @raises Lost"""

    def __init__(self, part, most):
        self.part = part
        self.left = most
        self.inflate = zlib.decompressobj(31)
        self.ready = b""

    def read(self, count):
        while not self.ready and not self.inflate.eof:
            data = self.inflate.unconsumed_tail or self.part.read(CHUNK)
            if not data:
                raise Lost("a pack of files is cut off")
            try:
                self.ready = self.inflate.decompress(data, CHUNK)
            except zlib.error as error:
                raise Lost(f"a pack of files is damaged: {error}") from None
        data, self.ready = self.ready[:count], self.ready[count:]
        self.left -= len(data)
        if self.left < 0:
            raise Lost("a pack holds more than was ever saved")
        return data


def check(target):
    """@raises Lost if a path would lead out of the workspace"""
    blocked = None
    for path in sorted(target, key=tree_order):
        around = b"/%b/" % path
        if b"//" in around or b"/./" in around or b"/../" in around:
            raise Lost(f"the path {os.fsdecode(path)!r} does not stay in the workspace")
        if blocked is not None and path.startswith(blocked + b"/"):
            raise Lost(f"the path {os.fsdecode(path)!r} is below something that is not a folder")
        if not target[path].startswith(b"d"):
            blocked = path


def extract(part, wanted, target, stage, most):
    """Writes the wanted files of a pack into the stage, each under its number. @returns those that were found. @raises Lost"""
    import tarfile

    found, source = set(), Unpacked(part, most)
    try:
        # A stream is only read, whatever else the type asks for.
        with tarfile.open(mode="r|", fileobj=source, encoding="utf-8", errors="surrogateescape") as tar:  # pyright: ignore[reportArgumentType, reportCallIssue]
            for member in tar:
                # Otherwise tarfile would keep every header in memory.
                tar.members = []
                path = os.fsencode(member.name).removeprefix(b"./")
                if not member.isreg() or path not in wanted:
                    continue
                content = tar.extractfile(member)
                fd = os.open(wanted[path], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600, dir_fd=stage)
                try:
                    while content and (data := content.read(CHUNK)):
                        write_all(fd, data)
                    set_facts(fd, target[path])
                finally:
                    os.close(fd)
                found.add(path)
        while source.read(CHUNK):
            pass
    except tarfile.TarError as error:
        raise Lost(f"a pack of files is damaged: {error}") from None
    return found


def write_all(fd, data):
    while data:
        data = data[os.write(fd, data) :]


def set_facts(fd, value):
    """Sets the mode and time of a file."""
    _, mode, _, mtime, _, _ = fields(value)
    seconds, _, fraction = mtime.partition(b".")
    ns = int(seconds) * 10**9 + int((fraction + b"0" * 9)[:9])
    os.utime(fd, ns=(ns, ns))
    os.fchmod(fd, int(mode, 8) & 0o7777)


def remove_tree(name, parent, stage):
    """Removes a file or folder. Nested folders are first moved up into the stage, so that no nesting is too deep."""
    todo, moved = [(name, parent)], 0
    while todo:
        name, parent = todo.pop()
        try:
            os.unlink(name, dir_fd=parent)
            continue
        except FileNotFoundError:
            continue
        except (IsADirectoryError, PermissionError):
            pass
        folder, _ = enter(name, parent, 0o700)
        with os.scandir(folder) as items:
            names = [os.fsencode(item.name) for item in items]
        for inner in names:
            try:
                os.unlink(inner, dir_fd=folder)
            except (IsADirectoryError, PermissionError):
                moved += 1
                handle, _ = enter(inner, folder, 0o700)
                os.close(handle)
                away = b"removed-%d" % moved
                os.rename(inner, away, src_dir_fd=folder, dst_dir_fd=stage)
                todo.append((away, stage))
        os.close(folder)
        os.rmdir(name, dir_fd=parent)


def place(path, value, folders, stage, numbers):
    """Replaces whatever is at this path by the saved entry."""
    kind, _, _, _, _, target = fields(value)
    folder, name = folders.of(path)
    if kind == b"d":
        make_folder(name, folder, 0o700)
    elif path in numbers:
        try:
            os.rename(numbers[path], name, src_dir_fd=stage, dst_dir_fd=folder)
        except IsADirectoryError:
            remove_tree(name, folder, stage)
            os.rename(numbers[path], name, src_dir_fd=stage, dst_dir_fd=folder)
    elif kind == b"f":
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        try:
            file = os.open(name, flags, 0o600, dir_fd=folder)
        except FileExistsError:
            remove_tree(name, folder, stage)
            file = os.open(name, flags, 0o600, dir_fd=folder)
        set_facts(file, value)
        os.close(file)
    else:
        remove_tree(name, folder, stage)
        os.symlink(target, name, dir_fd=folder)


def apply(target, changed, removed, stage, numbers):
    folders = Folders(0o700, make=True)
    try:
        for path in sorted(removed, key=tree_order, reverse=True):
            folder, name = folders.of(path)
            remove_tree(name, folder, stage)
        for path in sorted(changed, key=tree_order):
            place(path, target[path], folders, stage, numbers)
        # Innermost first: nothing in a folder can be changed once its own mode forbids it.
        for path in sorted(changed, key=tree_order, reverse=True):
            if target[path].startswith(b"d"):
                folder, name = folders.of(path)
                opened, _ = enter(name, folder, 0o700)
                os.fchmod(opened, int(fields(target[path])[1], 8) & 0o7777)
                os.close(opened)
    finally:
        folders.close()


def most_unpacked(limits):
    """Bytes of the largest tar that a save may have written: per round, the content, and for each entry a header, a long name and
    padding. The content goes to the disk, not into memory."""
    return MAX_ROUNDS * (limits["bytes"] + 4 * BLOCK * limits["entries"] + limits["listingBytes"])


def restore(order, parts, write):
    """Parts: the listing to restore, then packs, newest first, read as far as needed. The workspace is not changed until all
    missing files have been read. A workspace with a base has nothing but that yet: what the base had at a path that was changed is
    in no pack. Writes the listing with the times its files have now. @raises Lost"""
    target, absent = read_listing(parts.read(), MAX_LISTING_BYTES)
    check(target)
    target = {path: value for path, value in target.items() if not (value.startswith(b"f") and LOCK.search(path))}
    rebuilt = {os.fsencode(name) for name in order["rebuilt"]}
    tracked = [path for path in target if any(name in rebuilt for name in path.split(b"/"))]
    now = Survey(UNBOUNDED, order["rebuilt"], also=tracked).entries
    os.umask(0)
    name = STAGE.encode() + os.urandom(8).hex().encode()
    os.mkdir(name, 0o700)
    top, stage = os.open(".", FOLDER), os.open(name, FOLDER)
    try:
        changed = {path for path in target if not is_same(now.get(path), target[path], use_ctime=False)}
        # An empty file needs no pack.
        files = [path for path in changed if fields(target[path])[2] > 0]
        numbers = {path: b"%d" % at for at, path in enumerate(files)}
        missing = dict(numbers)
        while missing and (part := parts.next()):
            for path in extract(part, missing, target, stage, most_unpacked(order["limits"])):
                del missing[path]
        # Files that are in no pack were removed while they were saved.
        changed.difference_update(missing)
        target = {path: value for path, value in target.items() if path not in missing}
        gone = {path for path in changed if target[path] == REMOVED}
        apply(target, changed - gone, [*gone, *(path for path in now if path not in target)], stage, numbers)
    finally:
        remove_tree(name, top, stage)
    back, lacking = bring_back(absent, checkouts_in(target)) if absent else ([], [])
    # Otherwise the survey would read the times of every file twice.
    time.sleep(TICK_NS / 10**9)
    now = Survey(UNBOUNDED, order["rebuilt"], also=tracked).entries
    gone = sorted(path for path in {*absent, *lacking} - {*back, b"."} if path not in now)
    unlike = [path for path, value in target.items() if now.get(path, unlisted(value))[:1] != value[:1]]
    if unlike:
        raise OSError(errno.EAGAIN, f"{len(unlike)} of {len(target)} paths are missing, such as {unlike[0]!r}")
    for piece in written_listing({path: as_restored(target[path], now.get(path, target[path])) for path in target}, absent):
        write(piece)
    named = [{"path": os.fsdecode(path), "reason": absent.get(path, "not-in-git")} for path in gone[:MAX_REPORTED]]
    return {"notRestored": named, "notRestoredCount": len(gone)}


def unlisted(value):
    """What it means that a path is not listed: with a base, a folder can be the base's own."""
    return value if value.startswith(b"d") and are_mounted() else b"-"


def checkouts_in(entries):
    """Folders that have a `.git`, or something in it: with a base, that itself may not be listed."""
    parts = (path.split(b"/") for path in entries)
    return {b"/".join(names[: names.index(b".git")]) for names in parts if b".git" in names}


def as_restored(saved, now):
    """A file that differs from its save, such as an index that was marked, is to be saved again."""
    return now if not now.startswith(b"f") or fields(saved)[2:4] == fields(now)[2:4] else uncertain(now)
