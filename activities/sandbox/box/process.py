"""Starting and finding processes of the tools' uid. Part of the supervisor: box-source.ts joins the parts."""

import errno
import os
import signal
from contextlib import contextmanager

# Tools run under these ids whatever the image calls them.
TOOL_UID = 1000
TOOL_GID = 1000
WORKSPACE = "/workspace"
MARK = "LONGHAUL_CALL"


@contextmanager
def as_tool():
    """For the while, this process may signal and read what uid 1000 may, and no more. Real and saved ids stay root's,
    so that no tool can signal the supervisor meanwhile. Needs neither CAP_KILL nor a fork, which a full box refuses."""
    os.setegid(TOOL_GID)
    os.seteuid(TOOL_UID)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


def drop_for_good():
    """In a forked child: become uid 1000 without any capability. The signal set-up of the parent is taken off first,
    since from here on tools may signal this process."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGCHLD, signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        # Where memory runs out, tools go before the supervisor.
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")
    except OSError:
        pass
    os.setgroups([])
    os.setresgid(TOOL_GID, TOOL_GID, TOOL_GID)
    os.setresuid(TOOL_UID, TOOL_UID, TOOL_UID)
    os.umask(0o022)


def processes():
    """pid -> (parent, group, session) of every process that is not a zombie."""
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
            table[int(name)] = tuple(int(field) for field in fields[1:4])
    return table


def carries(pid, mark):
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return (b"\0" + mark + b"\0") in (b"\0" + file.read() + b"\0")
    except OSError:
        return False


def family(mark, leader):
    """Pids that belong to a call: by mark (survives setsid), by session and group of a leader that ran just now
    (survives `env -i`), and all their descendants. To be called as the tools' uid."""
    table = processes()
    found = set()
    for pid, (_, group, session) in table.items():
        if (leader is not None and leader in (group, session)) or carries(pid, mark):
            found.add(pid)
    grown = True
    while grown:
        grown = False
        for pid, (parent, _, _) in table.items():
            if parent in found and pid not in found:
                found.add(pid)
                grown = True
    return found


class Refused(Exception):
    """The command could not be started; the text is for the model."""


def spawn(argv, env, cwd, stdin, out, err):
    """Pid of the program, which leads its own session, as uid 1000 with a fixed environment and nothing inherited."""
    report, reporter = os.pipe()
    try:
        pid = os.fork()
    except OSError as error:
        os.close(report)
        os.close(reporter)
        raise Refused(f"no process could be started: {os.strerror(error.errno)}; end some first") from error
    if pid == 0:
        stage = "the supervisor"
        try:
            os.setsid()
            os.dup2(stdin, 0)
            os.dup2(out, 1)
            os.dup2(err, 2)
            drop_for_good()
            stage = cwd
            os.chdir(cwd)
            here = os.getcwd()
            if here != WORKSPACE and not here.startswith(WORKSPACE + "/"):
                raise OSError(errno.EXDEV, f"is outside {WORKSPACE}")
            stage = argv[0]
            os.execvpe(argv[0], argv, env)
        except BaseException as error:
            text = error.strerror if isinstance(error, OSError) else str(error)
            os.write(reporter, f"{stage}: {text}"[:1000].encode("utf-8", "replace"))
        os._exit(127)
    os.close(reporter)
    try:
        trouble = os.read(report, 4096)
    finally:
        os.close(report)
    if trouble:
        os.waitpid(pid, 0)
        raise Refused(trouble.decode("utf-8", "replace"))
    return pid
