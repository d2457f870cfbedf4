"""Git in the workspace's repository, with settings under which it runs nothing of it. First part of the program that delivers: see sources.ts."""

import os
import subprocess

OPTIONS = ["core.hooksPath=/dev/null", "core.fsmonitor=false", "commit.gpgSign=false", "gc.auto=0", "log.showSignature=false"]
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
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **(env or {})},
    )
    if done.returncode not in ok:
        words = done.stderr.decode("utf-8", "replace")
        raise Trouble("git %s: %s" % (args[0], cause_in(words) or "it ended with code %d" % done.returncode))
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
