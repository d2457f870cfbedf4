"""Packs what changed since an earlier listing."""

import errno
import os
import stat
import zlib

from ..folder import widen
from ..layers import BASE, are_mounted
from .survey import GONE, Survey
from .tree import (
    MAX_LISTING_BYTES,
    UNBOUNDED,
    Folders,
    Lost,
    fields,
    is_same,
    read_listing,
    tree_order,
    value_of,
    written_listing,
)

# A file renamed between listing and packing would be missing under its new name, so the save is repeated, at most this often.
MAX_ROUNDS = 3
MAX_REPORTED = 200
CHUNK = 1 << 18
# What differs from the base can be shown as a difference of lines only if what it was is known. Larger files are named.
MAX_BEFORE_FILE_BYTES = 1 << 20
MAX_BEFORE_BYTES = 64 << 20
BLOCK = 512


class Pack:
    """A gzipped tar. If a path has two entries, the later one counts."""

    def __init__(self, write):
        self.write = write
        self.deflate = zlib.compressobj(3, zlib.DEFLATED, 31)
        self.bytes = 0

    def put(self, data):
        self.wrote(self.deflate.compress(data))

    def wrote(self, piece):
        self.write(piece)
        self.bytes += len(piece)

    def close(self):
        self.put(bytes(2 * BLOCK))
        self.wrote(self.deflate.flush())

    def add(self, path, value, folders, most):
        """@returns the file's value as packed, marked if it differs from the listing. @raises OSError"""
        kind, listed_mode, listed_size, mtime, _, _ = fields(value)
        if listed_size == 0:
            self.put(head_of(path, 0, listed_mode, mtime))
            return value
        folder, name = folders.of(path)
        fd, mode = open_file(name, folder)
        try:
            info = os.fstat(fd)
            if not stat.S_ISREG(info.st_mode):
                raise OSError(errno.ENOENT, "no longer a file")
            # The file may have grown since it was listed: the next save packs all of it, or skips it.
            left = size = min(info.st_size, most)
            self.put(head_of(path, size, listed_mode, mtime))
            while left and (data := os.read(fd, min(left, CHUNK))):
                self.put(data)
                left -= len(data)
            # Zeros, if it has shrunk, and padding.
            self.put(bytes(left + -size % BLOCK))
        finally:
            if mode is not None:
                os.fchmod(fd, mode)
            info = os.fstat(fd)
            os.close(fd)
        if left or size != listed_size or fields(value_of(info))[2:4] != (listed_size, mtime):
            return b"%b %b %d %b/?\0" % (kind, listed_mode, size, mtime)
        # If a permission was added for reading, its times have changed.
        return value if mode is None else value_of(info)


def head_of(path, size, mode, mtime):
    # Imported here because it is slow, and most saves have nothing to pack.
    import tarfile

    head = tarfile.TarInfo(os.fsdecode(path))
    head.size, head.mode, head.mtime = size, int(mode, 8), int(mtime.partition(b".")[0])
    return head.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")


def open_file(name, folder):
    """@returns the open file, and the mode to restore. @raises OSError"""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY
    try:
        return os.open(name, flags | os.O_NOFOLLOW, dir_fd=folder), None
    except PermissionError:
        handle = os.open(name, os.O_PATH | os.O_NOFOLLOW, dir_fd=folder)
        try:
            mode = widen(handle, 0o400)
            return os.open(f"/proc/self/fd/{handle}", flags), mode
        finally:
            os.close(handle)


def pack_files(pack, survey, wanted):
    """Adds unreadable files to the survey's list. @returns values of the packed files, and how many were removed in between"""
    packed, gone = {}, 0
    folders = Folders(0o500)
    try:
        for path in sorted(wanted, key=tree_order):
            try:
                # A repository's file, or one that was saved before, may be larger than others.
                most = max(survey.limits["fileBytes"], fields(survey.entries[path])[2])
                packed[path] = pack.add(path, survey.entries[path], folders, most)
            except OSError as error:
                if error.errno in GONE:
                    del survey.entries[path]
                    gone += 1
                else:
                    survey.skip(path, fields(survey.entries[path])[2], "not-readable")
    finally:
        folders.close()
    return packed, gone


def look_and_keep(order, before):
    """Surveys the files as they are now; unreadable ones are listed as they were before. @returns the survey, and the unreadable
    ones"""
    survey = Survey(order["limits"], order["rebuilt"], before)
    kept = survey.keep(before, survey.unread)
    kept |= survey.keep_whole(before, order["limits"]["bytes"])
    survey.drop_largest(order["limits"]["bytes"])
    return survey, kept


def differences(before, now):
    changed = [path for path, value in now.items() if not is_same(before.get(path), value)]
    return changed, [path for path in before if path not in now]


def is_known(missing, was_missing):
    """Whether the last listing names all that is missing. After a restore less is there to be missing; it stays named until something
    changes."""
    return missing.items() <= was_missing.items()


def save(order, parts, write):
    """Order: `whole`, `hasBase`, `limits`, `rebuilt`. Parts: the newest stored listing and, with `hasBase`, the listing that the
    pack is the difference to. Writes the pack, then what the base has of files that differ since that listing, then the
    listing; nothing if nothing changed. `only`: names of the files that are packed."""
    latest, was_missing = listing_of(parts)
    base = listing_of(parts)[0] if order["hasBase"] else latest
    survey, kept = look_and_keep(order, base or {})
    if not any(differences(latest or {}, survey.entries)) and is_known(survey.missing(), was_missing):
        return report(survey, unchanged=True)
    # Not whole if files could not be read: only earlier packs have their content.
    whole = base is None or (order["whole"] and not kept)
    have, pack = {} if whole else dict(base or {}), Pack(write)
    for rounds in range(1, MAX_ROUNDS + 1):
        files = [path for path, value in survey.entries.items() if value.startswith(b"f") and path not in kept]
        if order.get("only"):
            files = [path for path in files if os.fsdecode(os.path.basename(path)) in order["only"]]
        first = len(survey.unread)
        packed, gone = pack_files(pack, survey, [p for p in files if not is_same(have.get(p), survey.entries[p])])
        have.update(packed)
        survey.entries.update(packed)
        # Unreadable files keep their earlier content, if there is one.
        still = survey.keep(have, survey.unread[first:])
        kept |= still
        for path in survey.unread[first:]:
            if path not in still:
                survey.entries.pop(path, None)
        kept |= survey.keep_whole(have, order["limits"]["bytes"])
        if not gone or rounds == MAX_ROUNDS:
            break
        survey, kept = look_and_keep(order, have)
    pack.close()
    before = pack_before(survey, {} if whole else base, Pack(write))
    missing = survey.missing()
    if not any(differences(latest or {}, survey.entries)) and is_known(missing, was_missing):
        return report(survey, unchanged=True)
    changed, removed = differences(base or {}, survey.entries)
    for piece in written_listing(survey.entries, missing):
        write(piece)
    return report(survey, packBytes=pack.bytes, beforeBytes=before, changed=len(changed), removed=len(removed), whole=whole)


def pack_before(survey, earlier, pack):
    """Packs files as the base has them: those at and below paths that the earlier listing does not have; a whole save has them all.
    No difference is shown of a repository's own files. @returns the pack's bytes; 0 without one"""
    if not are_mounted():
        return 0
    left, found = MAX_BEFORE_BYTES, False
    for path, value in sorted(survey.entries.items()):
        if path in earlier or value.startswith(b"d"):
            continue
        for here in files_below(os.path.join(os.fsencode(BASE), path)):
            if b".git" in here.split(b"/"):
                continue
            size = os.lstat(here).st_size
            if size > MAX_BEFORE_FILE_BYTES or size > left:
                continue
            with open(here, "rb") as file:
                data = file.read()
            left -= size
            found = True
            pack.put(head_of(here[len(BASE) + 1 :], size, b"644", b"0"))
            pack.put(data + bytes(-size % BLOCK))
    if not found:
        return 0
    pack.close()
    return pack.bytes


def files_below(path):
    """A file itself, or all files in a folder; nothing of other kinds. Of a base, which does not change."""
    if os.path.isfile(path) and not os.path.islink(path):
        yield path
    elif os.path.isdir(path) and not os.path.islink(path):
        for folder, _, names in os.walk(path):
            yield from (
                here
                for here in (os.path.join(folder, name) for name in names)
                if os.path.isfile(here) and not os.path.islink(here)
            )


def list_all(order, _parts, write):
    """Writes the listing of everything that is not in a rebuilt folder, or that Git tracks. @returns how many files of the work it has, and the bytes of all, history included"""
    entries = Survey(UNBOUNDED, order["rebuilt"]).entries
    for piece in written_listing(entries, {}):
        write(piece)
    sizes = {path: fields(value)[2] for path, value in entries.items() if value.startswith(b"f")}
    work = [path for path in sizes if b".git" not in path.split(b"/")]
    return {"files": len(work), "bytes": sum(sizes.values())}


def listing_of(parts):
    """The next part's listing, and what is missing in it; None if it is empty or cannot be read: then everything is saved."""
    data = parts.read()
    try:
        return read_listing(data, MAX_LISTING_BYTES) if data else (None, {})
    except Lost:
        return None, {}


def report(survey, **facts):
    skipped = sorted(survey.skipped, key=lambda item: tree_order(item[0]))
    named = [
        {"path": os.fsdecode(path)[:1000] or ".", "bytes": size, "reason": reason}
        for path, size, reason in skipped[:MAX_REPORTED]
    ]
    return {**facts, "skipped": named, "skippedCount": len(skipped)}
