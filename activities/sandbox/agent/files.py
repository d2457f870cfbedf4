"""File operations, in a forked child that cannot become root again.

No path leaves /workspace: a path is walked folder by folder from an open folder, links are read and walked in the same
way, `..` goes back to the folder we came from. So nothing is ever looked up by a name that a tool could have replaced.
"""

from __future__ import annotations

import binascii
import errno
import fcntl
import hashlib
import os
import stat
import time

from .place import WORKSPACE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_LINKS = 40
MAX_HASHED_BYTES = 64 << 20
MAX_READ_BYTES = 16 << 20
MAX_ENTRIES = 100_000
LOCK_SECONDS = 5

REASONS = {
    errno.ENOENT: ("not-found", "there is no such file or folder"),
    errno.ENOTDIR: ("not-a-folder", "a part of the path is not a folder"),
    errno.EISDIR: ("not-a-file", "it is a folder"),
    errno.EACCES: ("denied", "permission denied"),
    errno.EPERM: ("denied", "not permitted"),
    errno.EROFS: ("denied", "read-only file system"),
    errno.EEXIST: ("exists", "it exists already"),
    errno.ENOSPC: ("no-space", "no space left"),
    errno.EDQUOT: ("no-space", "no space left"),
    errno.EFBIG: ("no-space", "the sandbox's disk limit is reached; delete what is not needed first"),
    errno.ELOOP: ("failed", "too many links, or a link that was replaced during the operation"),
}


class Refusal(Exception):
    """The operation is not done. `reason` is for programs, the text for the model."""

    def __init__(self, reason: str, text: str):
        super().__init__(text)
        self.reason = reason


def outside():
    return Refusal("outside", f"the path leaves {WORKSPACE}")


def parts_of(path: str):
    """The path's names, from the workspace on. @raises Refusal"""
    if "\0" in path:
        raise Refusal("failed", "a path cannot contain a NUL character")
    if path.startswith("/"):
        if path != WORKSPACE and not path.startswith(WORKSPACE + "/"):
            raise outside()
        path = path[len(WORKSPACE) :]
    return [part for part in path.split("/") if part not in ("", ".")]


class Place:
    """Where a path ends: an open folder and a name in it, or the workspace itself (name None)."""

    def __init__(self, folder: int, name: str | None, info: os.stat_result | None):
        self.folder = folder
        self.name = name
        # stat of the file at the path; None if there is none.
        self.info = info


def walk(path: str, follow_last: bool = True, make_folders: bool = False):
    """Walks to a path. @returns where it ends @raises Refusal, OSError"""
    # The folders walked through so far: `..` goes back to the previous one.
    folders = [os.open(WORKSPACE, os.O_PATH | os.O_DIRECTORY)]
    todo = parts_of(path)[::-1]
    # `a/` names a folder, so a link at the end is followed.
    follow_last = follow_last or path.endswith("/")
    links = 0
    while todo:
        part = todo.pop()
        if part == "..":
            if len(folders) == 1:
                raise outside()
            os.close(folders.pop())
            continue
        try:
            fd = os.open(part, os.O_PATH | os.O_NOFOLLOW, dir_fd=folders[-1])
        except FileNotFoundError:
            if not todo:
                return Place(folders[-1], part, None)
            if not make_folders:
                raise
            try:
                os.mkdir(part, 0o777, dir_fd=folders[-1])
            except FileExistsError:
                pass
            todo.append(part)
            links += 1
            if links > MAX_LINKS + len(todo) * 2:
                raise OSError(errno.ELOOP, "") from None
            continue
        info = os.fstat(fd)
        if stat.S_ISLNK(info.st_mode) and (todo or follow_last):
            links += 1
            if links > MAX_LINKS:
                raise OSError(errno.ELOOP, "")
            target = os.readlink("", dir_fd=fd)
            os.close(fd)
            if target.startswith("/"):
                for folder in folders[1:]:
                    os.close(folder)
                del folders[1:]
            todo.extend(parts_of(target)[::-1])
        elif todo and stat.S_ISDIR(info.st_mode):
            folders.append(fd)
        elif todo:
            raise NotADirectoryError(errno.ENOTDIR, "")
        else:
            os.close(fd)
            return Place(folders[-1], part, info)
    return Place(folders[-1], None, os.fstat(folders[-1]))


def open_regular(place: Place):
    """@returns a descriptor of the file @raises Refusal if it is something else, OSError"""
    if place.info is None:
        raise FileNotFoundError(errno.ENOENT, "")
    if stat.S_ISDIR(place.info.st_mode):
        raise IsADirectoryError(errno.EISDIR, "")
    if not stat.S_ISREG(place.info.st_mode):
        raise Refusal("not-a-file", "it is a pipe, socket or device")
    fd = os.open(place.name or ".", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY, dir_fd=place.folder)
    # It may have been replaced since it was looked at.
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        raise Refusal("not-a-file", "it is a pipe, socket or device")
    return fd


def hash_of(fd: int):
    """SHA-256 of an open file, in hex; empty if it has more than MAX_HASHED_BYTES."""
    if os.fstat(fd).st_size > MAX_HASHED_BYTES:
        return ""
    digest = hashlib.sha256()
    offset = 0
    while data := os.pread(fd, 1 << 20, offset):
        digest.update(data)
        offset += len(data)
    return digest.hexdigest()


def read_file(request: dict[str, Any]):
    """Bytes from `offset`, at most `maxBytes`; size, hash and mode of the whole file. @raises Refusal, OSError"""
    fd = open_regular(walk(request["path"]))
    info = os.fstat(fd)
    left = min(request.get("maxBytes") or MAX_READ_BYTES, MAX_READ_BYTES)
    offset: int = request.get("offset") or 0
    pieces: list[bytes] = []
    while left > 0 and (data := os.pread(fd, min(left, 1 << 20), offset)):
        pieces.append(data)
        offset += len(data)
        left -= len(data)
    mode = stat.S_IMODE(info.st_mode) & 0o777
    return {"data": b"".join(pieces), "size": info.st_size, "hash": hash_of(fd), "mode": mode}


def lock_folder(place: Place):
    """Keeps our other file operations from writing here between comparing and writing; released when this process ends."""
    fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=place.folder)
    end = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            return fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                raise Refusal("failed", "another process holds a lock on its folder") from None
            time.sleep(0.002)


def check_unchanged(place: Place, if_hash: str | None, new_hash: str | None):
    """Raises if the file does not have the hash that the caller expects. True if it already has the new content."""
    current = None if place.info is None else hash_of(open_regular(place))
    if current is not None and current == new_hash:
        # A repeated write, whose first answer was lost.
        return True
    if if_hash is None and current is not None:
        raise Refusal("exists", "it exists already")
    if current != if_hash:
        raise Refusal("changed", "it has changed since it was read; read it again")
    return False


def writable(place: Place):
    """Whether the tools' user may write to the file."""
    return os.access(place.name or ".", os.W_OK, dir_fd=place.folder, effective_ids=True, follow_symlinks=False)


def write_file(request: dict[str, Any]):
    """Replaces the file as a whole. With `ifHash`, only the content of that hash, or with None only what is not there. @raises
    Refusal, OSError"""
    data = binascii.a2b_base64(request["data"])
    new_hash = hashlib.sha256(data).hexdigest()
    place = walk(request["path"], make_folders=True)
    info = place.info
    if place.name is None or (info is not None and stat.S_ISDIR(info.st_mode)) or request["path"].endswith("/"):
        raise IsADirectoryError(errno.EISDIR, "")
    if info is not None and not stat.S_ISREG(info.st_mode):
        raise Refusal("not-a-file", "it is a pipe, socket or device")
    if info is not None and not writable(place):
        raise Refusal("denied", "it is write-protected")
    if "ifHash" in request:
        lock_folder(place)
    if "ifHash" in request and check_unchanged(place, request["ifHash"], new_hash):
        return {"created": request["ifHash"] is None, "hash": new_hash}
    mode = request.get("mode")
    if mode is None:
        mode = stat.S_IMODE(info.st_mode) if info is not None else 0o644
    temporary = f".longhaul-{os.urandom(8).hex()}.tmp"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=place.folder)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
        os.fchmod(fd, mode & 0o777)
        if request.get("ifHash", "") is None:
            # Fails if the file has been created by now.
            os.link(temporary, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
            os.unlink(temporary, dir_fd=place.folder)
        else:
            os.rename(temporary, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
    except BaseException:
        os.unlink(temporary, dir_fd=place.folder)
        raise
    return {"created": info is None, "hash": new_hash}


def remove_file(request: dict[str, Any]) -> dict[str, Any]:
    """@raises Refusal, OSError"""
    place = walk(request["path"], follow_last=False)
    if place.name is None:
        raise IsADirectoryError(errno.EISDIR, "")
    if place.info is None:
        if request.get("again"):
            # A repeated request: most likely the first attempt removed it.
            return {}
        raise FileNotFoundError(errno.ENOENT, "")
    if stat.S_ISDIR(place.info.st_mode):
        raise IsADirectoryError(errno.EISDIR, "")
    if request.get("ifHash") is not None:
        lock_folder(place)
        # The hash is that of the content read at the path: for a link its target's, although the link itself is removed.
        check_unchanged(walk(request["path"]), request["ifHash"], None)
    os.unlink(place.name, dir_fd=place.folder)
    return {}


def entry(name: str, info: os.stat_result, folder: int):
    """Name, kind and size in bytes; for a link its target."""
    if stat.S_ISLNK(info.st_mode):
        try:
            return {"name": name, "kind": "link", "size": info.st_size, "target": os.readlink(name, dir_fd=folder)}
        except OSError:
            # Replaced in between.
            return {"name": name, "kind": "link", "size": info.st_size}
    kind = "folder" if stat.S_ISDIR(info.st_mode) else "file" if stat.S_ISREG(info.st_mode) else "other"
    return {"name": name, "kind": kind, "size": info.st_size}


def list_folder(request: dict[str, Any]):
    """At most `maxEntries`, sorted by name; `total` counts all. @raises Refusal, OSError"""
    place = walk(request["path"])
    name = "." if place.name is None else place.name
    fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=place.folder)
    names = sorted(os.listdir(fd))
    entries: list[dict[str, Any]] = []
    for name in names[: min(request.get("maxEntries") or MAX_ENTRIES, MAX_ENTRIES)]:
        try:
            entries.append(entry(name, os.stat(name, dir_fd=fd, follow_symlinks=False), fd))
        except FileNotFoundError:
            pass
    return {"entries": entries, "total": len(names)}


def stat_file(request: dict[str, Any]):
    """@raises Refusal, OSError"""
    place = walk(request["path"], follow_last=False)
    if place.info is None:
        raise FileNotFoundError(errno.ENOENT, "")
    return entry(place.name or ".", place.info, place.folder)


FILE_OPERATIONS = {
    "read": read_file,
    "write": write_file,
    "remove": remove_file,
    "list": list_folder,
    "stat": stat_file,
}


def answer_file(request: dict[str, Any]):
    """Does what the request says (`do`). @returns its result, or why it was refused; never raises what a path can cause"""
    try:
        return {"ok": True, **FILE_OPERATIONS[request["do"]](request)}
    except Refusal as error:
        reason, text = error.reason, str(error)
    except OSError as error:
        reason, text = REASONS.get(error.errno or 0, ("failed", error.strerror or str(error)))
    except UnicodeEncodeError:
        reason, text = "failed", "the name cannot be written in bytes"
    return {"ok": False, "reason": reason, "message": f"{request['path']}: {text}"}
