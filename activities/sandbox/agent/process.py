"""The tools' uid: acting as it, and finding its processes."""

from __future__ import annotations

import os
import signal
import stat
from contextlib import contextmanager

from .place import ATTACHED, MARK_LINE, TOOL_GID, TOOL_UID, WORKSPACE

# No process of root or of the tools has these ids. They differ from each other, so that a signal to everything that `as_tool`
# may signal spares children that have not become a program.
STRANGER_UID = 1
CHILD_UID = 2
# The saved group of a child until it executes a program: the kernel resets it then, and no tool can have it.
CHILD_GID = 2
PR_SET_CHILD_SUBREAPER = 36


@contextmanager
def as_tool():
    """Inside the block this process may signal and read what uid 1000 may, and no more. Its saved id stays root's and its
    real id is STRANGER_UID, so no tool can signal the supervisor, and a signal to everything that may be signalled spares
    the relay, which a real id of root would reach. Needs neither CAP_KILL nor a fork, which fails in a full sandbox."""
    if ATTACHED:
        # The supervisor and the tools both have the rights of the container's user.
        yield
        return
    os.setegid(TOOL_GID)
    os.setresuid(STRANGER_UID, TOOL_UID, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)
        os.setegid(0)


def kill_now(pid: int):
    """Kills a process. With -1 it kills all processes of the tools' uid except this one and the first one, in one call, which no
    fork can outrun. Must be called as that uid."""
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass


def open_workspace():
    """Undoes `chmod 000 /workspace`, as the tools' uid: until then nothing can be started, saved or found there, not even
    the command that would undo it."""
    try:
        info = os.stat(WORKSPACE)
        mode = stat.S_IMODE(info.st_mode)
        if info.st_uid == TOOL_UID and mode & 0o700 != 0o700:
            os.chmod(WORKSPACE, mode | 0o700)
    except OSError:
        # The operation that needs the workspace reports why it is missing.
        pass


def take_tool_rights():
    """Takes the rights of uid 1000 permanently, without any capability; called in a forked child. No tool has the child's real
    and saved ids, so none can stop or kill it. Nor can they inspect it: a process that changed its uid is not dumpable."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGCHLD, signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        # If memory runs out, tools go before the supervisor.
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")
    except OSError:
        pass
    os.umask(0o022)
    if ATTACHED:
        return
    os.setgroups([])
    os.setresgid(TOOL_GID, TOOL_GID, CHILD_GID)
    os.setresuid(CHILD_UID, TOOL_UID, CHILD_UID)


def become_tool():
    """Sets the real and saved ids too: from now on tools may signal this process."""
    if not ATTACHED:
        os.setresuid(TOOL_UID, TOOL_UID, TOOL_UID)


def adopt_orphans():
    """Makes orphaned processes our children: the first process of someone else's container may not reap them."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    except (ImportError, OSError, AttributeError):
        # Orphans that end stay as zombies until the container ends.
        pass


def processes():
    """pid -> (parent, group, session, start time) of every process that is not a zombie."""
    table: dict[int, tuple[int, int, int, int]] = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        if fields and fields[0] not in (b"Z", b"X"):
            parent, group, session, born = (int(fields[at]) for at in (1, 2, 3, 19))
            table[int(name)] = (parent, group, session, born)
    return table


def carries(pid: int, mark: bytes):
    """Whether a process has the mark in its environment; false if that cannot be read. @param pid its id"""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return (b"\0" + mark + b"\0") in (b"\0" + file.read() + b"\0")
    except OSError:
        return False


def number_of(pid: int):
    """The number of the command that started a process; None if no command did."""
    try:
        with open(f"/proc/{pid}/limits", "rb") as file:
            line = next(line for line in file if line.startswith(MARK_LINE))
        return int(line.split()[-2])
    except (OSError, StopIteration, ValueError):
        return None


def family(mark: bytes, number: int | None, leader: int | None, known: dict[int, int]):
    """pid -> start time of the processes of a command: those with its number or mark, those in the session or group of a leader
    that still ran just now, those `known` before their parents ended, and all descendants. Must be called as the tools' uid."""
    table = processes()
    found = {pid: born for pid, born in known.items() if pid in table and table[pid][3] == born}
    for pid, (_, group, session, born) in table.items():
        if (
            (leader is not None and leader in (group, session))
            or (number is not None and number_of(pid) == number)
            or carries(pid, mark)
        ):
            found[pid] = born
    return with_descendants(found, table)


def with_descendants(found: dict[int, int], table: dict[int, tuple[int, int, int, int]]):
    """`found` and all descendants of its processes; pid -> start time."""
    grown = True
    while grown:
        grown = False
        for pid, (parent, _, _, born) in table.items():
            if parent in found and pid not in found:
                found[pid] = born
                grown = True
    return found
