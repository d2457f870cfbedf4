"""Commits uncommitted files of the workspace and reports its HEAD. Runs as a command, with the tools' rights.

Input: one JSON document {base, lfs, commit?: {message, author: {name, email}}}.
Output: {head, ahead, committed?, leftOut, leftOutCount} or {trouble}.
"""
import json
import os
import re
import stat
import subprocess
import sys

MAX_FILE_BYTES = 10 * 1024 * 1024
MAX_NAMED = 20
OPTIONS = ["core.hooksPath=/dev/null", "core.fsmonitor=false", "commit.gpgSign=false", "gc.auto=0"]
POINTER = b"version https://git-lfs.github.com/spec/v1\n"
MAX_POINTER_BYTES = 1024
NOT_RESTORED = b"longhaul-not-restored"
UNDER_WAY = ["MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply"]


class Trouble(Exception):
    pass


def git(*args, ok=(0,), given=b"", env=None):
    options = [word for option in OPTIONS for word in ("-c", option)]
    done = subprocess.run(
        ["git", "--literal-pathspecs", *options, *args],
        input=given,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **(env or {})},
    )
    if done.returncode not in ok:
        words = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise Trouble("git %s: %s" % (args[0], words[-1][:300] if words else done.returncode))
    return done


def names(*args):
    return [name for name in git(*args).stdout.split(b"\0") if name]


def size_of(name):
    try:
        found = os.lstat(name)
    except OSError:
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0


def submodules():
    """Paths of submodules in the index: their files belong to other repositories."""
    return {line.split(b"\t", 1)[1] for line in names("ls-files", "-z", "--stage") if line.startswith(b"160000 ")}


def changed_submodules():
    """Submodules with changes, which a commit of this repository cannot contain."""
    links = sorted(submodules())
    if not links:
        return []
    return names("diff", "--name-only", "-z", "--ignore-submodules=none", "--diff-filter=d", "HEAD", "--", *links)


def too_large(paths, order):
    """Files too large to commit. Files in Git LFS are not, if their content is pushed too: a commit has only their pointers."""
    found = [name for name in paths if size_of(name) > MAX_FILE_BYTES]
    if not found or not order.get("lfs"):
        return found
    attributes = git("check-attr", "-z", "--stdin", "filter", given=b"\0".join(found) + b"\0").stdout.split(b"\0")
    filters = dict(zip(attributes[0::3], attributes[2::3]))
    return [name for name in found if filters.get(name) != b"lfs"]


def pointer_of(blob):
    """The object that a blob stands for, if it is a pointer of Git LFS."""
    size = git("cat-file", "-s", blob, ok=(0, 128)).stdout.strip()
    if not size.isdigit() or int(size) > MAX_POINTER_BYTES:
        return None
    text = git("cat-file", "blob", blob).stdout
    found = re.search(rb"^oid sha256:([0-9a-f]{64})$", text, re.M) if text.startswith(POINTER) else None
    return found and found.group(1)


def lost_of_lfs(paths):
    """Missing LFS files whose content is missing too: not deleted, but too large for the save that was restored."""
    store = lfs_store()
    lost = []
    for name in paths:
        if os.path.lexists(name):
            continue
        oid = pointer_of(b":" + name)
        if oid and not os.path.exists(os.path.join(store, oid[:2], oid[2:4], oid)):
            lost.append(name)
    return lost


def not_restored():
    """Tracked files that a restore could not bring back (agent/tracked.py), which the index passes over. One that is there again,
    made anew, is no longer passed over. @returns those that are not there"""
    marker = os.path.join(git("rev-parse", "--git-dir").stdout.strip(), NOT_RESTORED)
    try:
        with open(marker, "rb") as file:
            marked = {name for name in file.read().split(b"\0") if name}
    except OSError:
        return []
    marked &= set(names("ls-files", "-z"))
    again = [name for name in marked if os.path.lexists(name)]
    if again:
        git("update-index", "-z", "--no-skip-worktree", "--stdin", given=b"".join(name + b"\0" for name in again))
    return sorted(marked.difference(again))


def lfs_store():
    return os.path.join(git("rev-parse", "--git-common-dir").stdout.strip(), b"lfs", b"objects")


def refuse_unfinished():
    """@raises Trouble while a merge or rebase is in progress: a commit would end it"""
    folder = git("rev-parse", "--git-dir").stdout.strip()
    for mark in UNDER_WAY:
        if os.path.exists(os.path.join(folder, mark.encode())):
            raise Trouble("a merge or rebase is not finished in the workspace (%s)" % mark)
    if names("ls-files", "-z", "--unmerged"):
        raise Trouble("a merge with conflicts is not finished in the workspace")


def stage(order):
    """Stages the uncommitted files. @returns those that are left out: name -> (bytes, reason)"""
    left = {name: (0, "submodule") for name in changed_submodules()}
    left.update((name, (0, "not-restored")) for name in not_restored())
    links = submodules()
    add = []
    changed = sorted(set(names("ls-files", "-z", "--others", "--modified", "--exclude-standard")))
    large = too_large(changed, order)
    lost = lost_of_lfs(changed) if order.get("lfs") else []
    for name in changed:
        if name in links:
            continue
        if name in lost:
            left[name] = (0, "not-restored")
        elif name.endswith(b"/"):
            left[name] = (0, "repository")
        elif name in large:
            left[name] = (size_of(name), "too-large")
        else:
            add.append(name)
    if add:
        git("add", "--all", "--pathspec-from-file=-", "--pathspec-file-nul", given=b"\0".join(add))
    # Some may have been staged before.
    staged = too_large(names("diff", "--cached", "--name-only", "-z", "--no-renames", "--diff-filter=d", "HEAD"), order)
    for name in staged:
        left[name] = (size_of(name), "too-large")
    if staged:
        git("reset", "-q", "--pathspec-from-file=-", "--pathspec-file-nul", given=b"\0".join(staged))
    return left


def commit_staged(order):
    """@returns the commit; None if nothing is staged"""
    if git("diff", "--cached", "--quiet", "HEAD", ok=(0, 1)).returncode == 0:
        return None
    author, env = order["author"], {}
    for who in ("AUTHOR", "COMMITTER"):
        env["GIT_%s_NAME" % who] = author["name"]
        env["GIT_%s_EMAIL" % who] = author["email"]
    git("commit", "-q", "--no-verify", "-F", "-", given=order["message"].encode(), env=env)
    return git("rev-parse", "HEAD").stdout.decode().strip()


def of_lfs(base):
    """Files changed since the base whose content is only in the workspace's LFS store: a push would leave dangling pointers."""
    if not os.path.isdir(lfs_store()):
        return []
    changed = names("diff", "--name-only", "-z", "--no-renames", "--diff-filter=d", base, "HEAD")
    return [name for name in changed if pointer_of(b"HEAD:" + name)]


def main():
    order = json.load(sys.stdin)
    top = git("rev-parse", "--show-toplevel", ok=(0, 128)).stdout.strip()
    if os.path.realpath(top or b"/") != os.path.realpath(os.getcwdb()):
        raise Trouble("/workspace is no Git repository any more")
    if git("rev-parse", "--verify", "-q", "HEAD", ok=(0, 1)).returncode != 0:
        raise Trouble("the workspace's repository has no commit")
    committed, left = None, {}
    if order.get("commit"):
        refuse_unfinished()
        left = stage(order)
        committed = commit_staged(order["commit"])
    base = order["base"]
    ahead = -1
    if git("cat-file", "-e", base + "^{commit}", ok=(0, 1, 128)).returncode == 0:
        ahead = int(git("rev-list", "--count", "HEAD", "^" + base).stdout)
        pointers = [] if order.get("lfs") else of_lfs(base)
        if pointers:
            raise Trouble(
                "%d files are kept by Git LFS, whose content is not pushed yet (%s): take them out of LFS, set git.lfs, or pull the work and push it"
                % (len(pointers), pointers[0].decode("utf-8", "replace")[:200])
            )
    answer = {
        "head": git("rev-parse", "HEAD^{commit}").stdout.decode().strip(),
        "ahead": ahead,
        "leftOut": [
            {"path": name.decode("utf-8", "replace"), "bytes": size, "reason": reason}
            for name, (size, reason) in list(left.items())[:MAX_NAMED]
        ],
        "leftOutCount": len(left),
    }
    if committed is not None:
        answer["committed"] = committed
    return answer


try:
    said = main()
except Trouble as trouble:
    said = {"trouble": str(trouble)}
print(json.dumps(said))
