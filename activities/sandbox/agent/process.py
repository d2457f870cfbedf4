"""The tools' uid: acting as it, and finding its processes. Part of the supervisor: see sources.ts."""

import os
import signal
import stat
from contextlib import contextmanager

# No process of root or of the tools has these. They differ, so that a signal to all that `as_tool` may signal spares the
# children that have not become a program.
STRANGER_UID = 1
CHILD_UID = 2
PR_SET_CHILD_SUBREAPER = 36


@contextmanager
def as_tool():
    """Inside the block this process may signal and read what uid 1000 may, and no more. Its saved id stays root's and its
    real id is STRANGER_UID: so no tool can signal the supervisor, and a signal to everything that may be signalled spares
    the relay, which a real id of root would reach. Needs neither CAP_KILL nor a fork, which fails in a full sandbox."""
    if ATTACHED:
        # It has the rights of its container's user, and so have the tools.
        yield
        return
    os.setegid(TOOL_GID)
    os.setresuid(STRANGER_UID, TOOL_UID, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)
        os.setegid(0)


def kill_now(pid):
    """With -1 everything of the tools' uid, in one call, which no fork outruns: it signals neither us nor the first process. To
    be called as that uid."""
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
        # The operation that needs it reports why it is missing.
        pass


def take_tool_rights():
    """In a forked child, permanently: the rights of uid 1000, without any capability. No tool has its real and saved ids, so none
    can stop or kill it. They cannot inspect it either: a process that changed its uid is not dumpable."""
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
    os.setresgid(TOOL_GID, TOOL_GID, TOOL_GID)
    os.setresuid(CHILD_UID, TOOL_UID, CHILD_UID)


def become_tool():
    """From here on tools may signal this process."""
    if not ATTACHED:
        os.setresuid(TOOL_UID, TOOL_UID, TOOL_UID)


def adopt_orphans():
    """What a command leaves behind becomes our child: the first process of someone else's container may not reap it."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    except (ImportError, OSError, AttributeError):
        # They stay as dead entries until the container ends.
        pass


def processes():
    """pid -> (parent, group, session, start time) of every process that is not a zombie."""
    table = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        if fields and fields[0] not in (b"Z", b"X"):
            table[int(name)] = tuple(int(fields[at]) for at in (1, 2, 3, 19))
    return table


def carries(pid, mark):
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return (b"\0" + mark + b"\0") in (b"\0" + file.read() + b"\0")
    except OSError:
        return False


def number_of(pid):
    """The number of the command that a process came from; None if it has none."""
    try:
        with open(f"/proc/{pid}/limits", "rb") as file:
            line = next(line for line in file if line.startswith(MARK_LINE))
        return int(line.split()[-2])
    except (OSError, StopIteration, ValueError):
        return None


def family(mark, number, leader, known):
    """pid -> start time of the processes of a command: by its number and mark, by session and group of a leader that ran
    just now, those `known` before their parents ended, and all descendants. To be called as the tools' uid."""
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


def with_descendants(found, table):
    """`found` with all that its processes have started; pid -> start time."""
    grown = True
    while grown:
        grown = False
        for pid, (parent, _, _, born) in table.items():
            if parent in found and pid not in found:
                found[pid] = born
                grown = True
    return found
