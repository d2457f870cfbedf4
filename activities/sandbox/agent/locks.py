"""Removes lock files in git folders whose git is dead. Uses nothing of the other parts: see sources.ts."""

import os


def git_is_running():
    """Whether any git runs in this sandbox. Where that cannot be seen, one does."""
    try:
        with os.scandir("/proc") as found:
            pids = [item.name for item in found if item.name.isdigit()]
    except OSError:
        return True
    for pid in pids:
        try:
            with open("/proc/%s/comm" % pid, "rb") as comm:
                name = comm.read().strip()
            with open("/proc/%s/stat" % pid, "rb") as stat:
                state = stat.read().rpartition(b")")[2].split()[0]
        except (OSError, IndexError):
            continue
        if state not in (b"Z", b"X") and (name == b"git" or name.startswith(b"git-")):
            return True
    return False


def drop_locks(folder):
    """Removes the lock files below a git folder: also of its submodules and worktrees. No git may run there. @returns how many"""
    count = 0
    for place, folders, files in os.walk(folder):
        if os.path.basename(place) == b"objects":
            folders[:] = [name for name in folders if len(name) != 2]
        for name in files:
            if name.endswith(b".lock"):
                try:
                    os.unlink(os.path.join(place, name))
                    count += 1
                except OSError:
                    pass
    return count


def git_folders(top):
    """The git folders below a folder: its own, and those of repositories in it."""
    for place, folders, _ in os.walk(top):
        if b".git" in folders:
            folders.remove(b".git")
            yield os.path.join(place, b".git")
