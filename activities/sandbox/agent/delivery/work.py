"""Finds work that HEAD does not have: branches, tags, stashes, worktrees, commits that no reference names."""

import os
import re

from .repository import git

MAX_REFLOG = 1000
LEFT_DETACHED = re.compile(rb"checkout: moving from ([0-9a-f]{40,64}) to ")


class Item:
    """A piece of work: what people call it, of which kind, how many commits or files it has, and its last commit."""

    def __init__(self, path, reason, count=0, tip=None, about=b""):
        self.path, self.reason, self.count, self.tip, self.about = path, reason, count, tip, about


def existing(commits, folder=None):
    """Those of the commits that the repository has."""
    if not commits:
        return []
    out = git("cat-file", "--batch-check", given=b"\n".join(commits) + b"\n", folder=folder).stdout
    found = (line.split(b" ") for line in out.splitlines())
    return [words[0] for words in found if len(words) == 3 and words[1] in (b"commit", b"tag")]


def ahead(tips, known, folder=None, without=None):
    """How many commits the tips have that nothing known has, not counting those with that message."""
    given = b"\n".join([*tips, *(b"^" + commit for commit in known)]) + b"\n"
    options = [] if without is None else ["--fixed-strings", "--invert-grep", "--grep=" + without]
    return int(git("rev-list", "--count", *options, "--stdin", given=given, folder=folder).stdout)


def contains(tip, earlier):
    return not earlier or not existing(earlier) or ahead(earlier, [tip]) == 0


def head_of(folder=None):
    """@returns None if HEAD's branch has no commit"""
    found = git("rev-parse", "--verify", "-q", "HEAD^{commit}", ok=(0, 1, 128), folder=folder)
    return found.stdout.strip() if found.returncode == 0 else None


def at_remotes(folder=None):
    return git("for-each-ref", "--format=%(objectname)", "refs/remotes", folder=folder).stdout.split()


def references(folder=None):
    """Names of references that are ours, with their commits. What was fetched from a remote is at the remote."""
    fields = "%(refname) %(objecttype) %(objectname) %(*objecttype) %(*objectname)"
    for line in git("for-each-ref", "--format=" + fields, folder=folder).stdout.splitlines():
        name, *words = line.split(b" ")
        kind, commit = (words[2], words[3]) if words[0] == b"tag" else (words[0], words[1])
        if kind == b"commit" and name != b"refs/stash" and not name.startswith(b"refs/remotes/"):
            yield name, commit


KINDS = ((b"refs/heads/", "branch"), (b"refs/tags/", "tag"), (b"refs/", "reference"))


def in_references(known, folder=None):
    found = [(name, commit) for name, commit in references(folder) if commit not in known]
    if not found or ahead([commit for _, commit in found], known, folder) == 0:
        return
    for name, commit in found:
        count = ahead([commit], known, folder)
        if count:
            prefix, reason = next(kind for kind in KINDS if name.startswith(kind[0]))
            yield Item(name[len(prefix) :], reason, count, commit)


def in_stashes(folder=None):
    if git("rev-parse", "--verify", "-q", "refs/stash", ok=(0, 1, 128), folder=folder).returncode != 0:
        return
    lines = git("log", "-g", "--format=%gd%x09%gs", "refs/stash", "--", folder=folder).stdout.splitlines()
    # Made without a log, as by `git update-ref`: the reference has one all the same.
    alone = ["log", "-1", "--format=stash@{0}%x09%s", "refs/stash", "--"]
    for line in lines or git(*alone, folder=folder).stdout.splitlines():
        name, _, about = line.partition(b"\t")
        yield Item(name, "stash", about=about)


def in_worktrees(known):
    """Linked worktrees with uncommitted files, or with commits on no branch."""
    listed = git("worktree", "list", "--porcelain").stdout.strip().split(b"\n\n")
    for block in listed[1:]:
        lines = block.split(b"\n")
        path = lines[0].partition(b" ")[2]
        facts = dict((line + b" ").split(b" ", 1) for line in lines[1:])
        tip = facts.get(b"HEAD", b"").strip()
        count = 0
        if os.path.isdir(path):
            status = git("status", "--porcelain", "-z", "--no-renames", ok=(0, 128), folder=path).stdout
            count = len([line for line in status.split(b"\0") if line])
        commits = ahead([tip], known) if b"detached" in facts and existing([tip]) else 0
        if count or commits:
            yield Item(path, "worktree", count or commits)


def without_reference(known, everything):
    """
    Commits that no reference names: a detached HEAD that was left. And, if `everything`, all that HEAD once was: a rebase leaves
    such commits too, so they count only if HEAD has nothing in their place.
    """
    log = git("log", "-g", f"-{MAX_REFLOG}", "--format=%H%x09%gs", "HEAD", "--", ok=(0, 128)).stdout
    tips = []
    for line in log.splitlines():
        commit, _, how = line.partition(b"\t")
        left = LEFT_DETACHED.match(how)
        tips += [left.group(1)] if left else []
        tips += [commit] if everything else []
    tips = existing(list(dict.fromkeys(tips)))
    named = [commit for _, commit in references()]
    known = [*known, *existing([*named, *at_remotes()])]
    if not tips or ahead(tips, known) == 0:
        return
    for tip in tips:
        count = ahead([tip], known)
        if count:
            known.append(tip)
            yield Item(tip[:12], "detached", count, tip)


def in_submodules(links):
    """Branches and stashes of submodules. What their HEADs have is seen as a change of this repository."""
    for path in links:
        if not os.path.exists(os.path.join(path, b".git")):
            continue
        head = head_of(path)
        known = [*existing(at_remotes(path), path), *([head] if head else [])]
        for item in [*in_references(known, path), *in_stashes(path)]:
            yield Item(path + b": " + item.path, "submodule", item.count, about=item.about)


def elsewhere(known, links, everything):
    """All work that is not in the known commits and not uncommitted in the workspace."""
    found = [*in_references(known), *in_stashes(), *in_worktrees(known), *in_submodules(links)]
    return [*found, *without_reference([*known, *(item.tip for item in found if item.tip)], everything)]
