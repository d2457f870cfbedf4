"""Which files of a project name its packages, and whether a workspace has those of its base."""

from __future__ import annotations

import fnmatch
import os
import shlex

from .layers import BASE, CHANGED_FILES, are_mounted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

WORKSPACE = b"/workspace"
# What the taking on of a base to a newer commit leaves if it had to undo what the set-up changed (git/sandbox-git.ts).
AGAIN = b".git/longhaul-set-up-again"


def words_of(command: str):
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


def named_by(order: dict[str, Any]) -> Callable[[bytes], bool]:
    """Whether a path of the workspace names packages, or is named in a command of the set-up."""
    named = {os.path.normpath(word.encode()) for command in order["commands"] for word in words_of(command)}

    def is_lock(path: bytes):
        name = os.path.basename(path).decode(errors="replace")
        return path in named or any(fnmatch.fnmatchcase(name, lock) for lock in order["names"])

    return is_lock


def any_file(_path: bytes):
    return True


def are_of_base(order: dict[str, Any]):
    """`all`: every file counts, since the set-up may have read it. Looks only into folders that differ from the base. When in doubt,
    they are not."""
    if not are_mounted() or os.path.lexists(os.path.join(WORKSPACE, AGAIN)):
        return False
    is_lock = any_file if order["all"] else named_by(order)
    passed = {b".git", *map(os.fsencode, order["rebuilt"])}
    todo = [b""]
    while todo:
        path = todo.pop()
        try:
            here, base = listing(WORKSPACE, path), listing(os.fsencode(BASE), path)
            changes = listing(os.fsencode(CHANGED_FILES), path)
        except OSError:
            return False
        for name in (here.keys() | base.keys()) - passed:
            inner = os.path.join(path, name)
            now, before = here.get(name), base.get(name)
            if now and before and name not in changes and now.inode() == before.inode():
                continue
            if is_folder(now) and is_folder(before):
                todo.append(inner)
            elif differs(now, before) and has_lock(now, inner, is_lock, passed) | has_lock(before, inner, is_lock, passed):
                return False
    return True


def listing(root: bytes, path: bytes) -> dict[bytes, os.DirEntry[bytes]]:
    """Nothing if there is no such folder. @raises OSError"""
    try:
        with os.scandir(os.path.join(root, path)) as items:
            return {item.name: item for item in items}
    except (FileNotFoundError, NotADirectoryError):
        return {}


def is_folder(entry: os.DirEntry[bytes] | None):
    return entry is not None and entry.is_dir(follow_symlinks=False)


def differs(now: os.DirEntry[bytes] | None, before: os.DirEntry[bytes] | None):
    try:
        return not (is_file(now) and is_file(before)) or content(now) != content(before)
    except OSError:
        return True


def is_file(entry: os.DirEntry[bytes] | None):
    return entry is not None and entry.is_file(follow_symlinks=False)


def content(entry: os.DirEntry[bytes] | None):
    if entry is None:
        return b""
    with open(entry.path, "rb") as file:
        return file.read()


def has_lock(entry: os.DirEntry[bytes] | None, path: bytes, is_lock: Callable[[bytes], bool], passed: set[bytes]):
    """Whether an entry is such a file, or a folder that has one."""
    if entry is None:
        return False
    if not is_folder(entry):
        return is_lock(path)
    for folder, names, files in os.walk(entry.path):
        names[:] = [name for name in names if name not in passed]
        inner = os.path.normpath(os.path.join(path, os.path.relpath(folder, entry.path)))
        if any(is_lock(os.path.join(inner, name)) for name in [*names, *files]):
            return True
    return False
