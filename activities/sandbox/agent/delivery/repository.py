"""Git in the workspace's repository, with settings under which it runs nothing of it; and lock files whose git is dead."""

import os
import subprocess

# What runs nothing of the repository, and what makes git see each change of a file, and take it, whatever its settings say.
OPTIONS = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "commit.gpgSign=false",
    "gc.auto=0",
    "log.showSignature=false",
    "core.ignoreCase=false",
    "core.checkStat=default",
    "core.trustctime=true",
    "core.untrackedCache=false",
    "core.safecrlf=false",
    "commit.cleanup=whitespace",
    "status.showUntrackedFiles=all",
]
# What git adds to a failure: advice, and what happened before.
ADVICE = ("hint:", "warning:", "Another git process", "an editor opened", "are terminated", "may have crashed", "remove the file")


class Trouble(Exception):
    pass


def git(*args, ok=(0,), given=b"", env=None, folder=None):
    options = [word for option in OPTIONS for word in ("-c", option)]
    where = [] if folder is None else ["-C", folder]
    done = subprocess.run(
        ["git", *where, "--literal-pathspecs", *options, *args],
        input=given,
        capture_output=True,
        env={**os.environ, **(env or {})},
    )
    if done.returncode not in ok:
        words = done.stderr.decode("utf-8", "replace")
        raise Trouble(f"git {args[0]}: {cause_in(words) or f'it ended with code {done.returncode}'}")
    return done


def cause_in(words):
    """The line that names the cause: the first failure that git names; its last lines are advice."""
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    telling = [line for line in lines if not line.startswith(ADVICE)] or lines
    failures = [line for line in telling if line.startswith(("fatal:", "error:"))]
    return (failures or telling[-1:] or [""])[0][:300]


def names(*args, folder=None):
    return [name for name in git(*args, folder=folder).stdout.split(b"\0") if name]


def text(name):
    return name.decode("utf-8", "replace")


def git_is_running():
    """Whether any git runs in this sandbox. Where that cannot be seen, one does."""
    try:
        with os.scandir("/proc") as found:
            pids = [item.name for item in found if item.name.isdigit()]
    except OSError:
        return True
    for pid in pids:
        try:
            with open(f"/proc/{pid}/comm", "rb") as comm:
                name = comm.read().strip()
            with open(f"/proc/{pid}/stat", "rb") as stat:
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
