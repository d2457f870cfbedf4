"""Opens folders by name in an open folder, also our own without the needed permissions."""

from __future__ import annotations

import os
import stat

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


def enter(name: str | bytes, parent: int | None, need: int):
    """@returns an open folder, and the mode to restore if it is ours and lacked one of the owner's permissions `need`"""
    try:
        folder = os.open(name, FOLDER, dir_fd=parent)
    except PermissionError:
        handle = os.open(name, os.O_PATH | os.O_NOFOLLOW, dir_fd=parent)
        try:
            mode = widen(handle, need)
            folder = os.open(f"/proc/self/fd/{handle}", os.O_RDONLY | os.O_DIRECTORY)
        finally:
            os.close(handle)
        return folder, mode
    return folder, widen(folder, need)


def widen(fd: int, need: int):
    """Adds the permissions `need` for the owner of an open file, also by O_PATH. @returns the mode before; None if unchanged"""
    info = os.fstat(fd)
    mode = stat.S_IMODE(info.st_mode)
    if mode & need == need or info.st_uid != os.geteuid() or stat.S_ISLNK(info.st_mode):
        return None
    try:
        os.fchmod(fd, mode | need)
    except OSError:
        # Opened by O_PATH.
        os.chmod(f"/proc/self/fd/{fd}", mode | need)
    return mode


def leave(folder: int | None, mode: int | None):
    """Closes a folder that `enter` returned, and restores its mode."""
    if folder is None:
        return
    if mode is not None:
        os.fchmod(folder, mode)
    os.close(folder)
