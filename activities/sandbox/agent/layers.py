"""The layers of a workspace that has a base: what a folder has in the base and in the session's own changes.

docker/layers.ts mounts them, both read only. The kernel keeps the changes: a name that is not in them is the base's, unchanged.
Inode numbers are those of the layer below, since all volumes of an engine are on one file system.
"""

from __future__ import annotations

import os

from .folder import FOLDER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Union

    Name = Union[str, bytes]

BASE = "/run/longhaul-base"
CHANGED_FILES = "/run/longhaul-changes/up"


def are_mounted():
    return os.path.ismount(BASE)


class Level:
    """One folder of the workspace in both layers; None where a layer has no such folder."""

    def __init__(self, base: int | None, changes: int | None):
        self.base = base
        self.changes = changes

    def below(self, name: Name):
        return Level(folder_in(name, self.base), folder_in(name, self.changes))

    def in_changes(self) -> dict[bytes, os.DirEntry[str]]:
        return entries_of(self.changes)

    def in_base(self) -> dict[bytes, os.DirEntry[str]]:
        return entries_of(self.base)

    def is_of_base(self, name: Name, info: os.stat_result):
        """Whether an entry of the workspace is the base's own."""
        before = status_in(name, self.base)
        return before is not None and before.st_ino == info.st_ino and status_in(name, self.changes) is None

    def close(self):
        for folder in (self.base, self.changes):
            if folder is not None:
                os.close(folder)


class Levels:
    """The level of each folder on the way that a walk has open, the innermost last."""

    def __init__(self):
        self.stack = [Level(os.open(BASE, FOLDER), os.open(CHANGED_FILES, FOLDER))]

    @property
    def here(self):
        return self.stack[-1]

    def enter(self, name: Name):
        """Called once the workspace's own folder is open: a folder of the changes may have been closed to everyone until then."""
        self.stack.append(self.here.below(name))

    def leave(self):
        self.stack.pop().close()

    def close(self):
        while self.stack:
            self.leave()


def folder_in(name: Name, parent: int | None):
    if parent is None:
        return None
    try:
        return os.open(name, FOLDER, dir_fd=parent)
    except OSError:
        return None


def status_in(name: Name, parent: int | None):
    if parent is None:
        return None
    try:
        return os.stat(name, dir_fd=parent, follow_symlinks=False)
    except OSError:
        return None


def entries_of(folder: int | None) -> dict[bytes, os.DirEntry[str]]:
    if folder is None:
        return {}
    with os.scandir(folder) as items:
        return {os.fsencode(item.name): item for item in items}
