"""Commits uncommitted files of the workspace, and says what is to be delivered and what is not. Runs as a command, with the tools' rights.

Input: one JSON document {base, known, onto, remotes?, lfs, distrust?, commit?: {message, date, author: {name, email}}}.
Output: {head, tree, ref, ahead, fresh, committed?, leftOut, leftOutCount, isElsewhere} or {trouble}.

HEAD is delivered. If it has nothing and exactly one local branch is ahead, that branch is. All other work is named.
"""

import json
import os
import re
import shutil
import stat
import sys
import tempfile

from .repository import Trouble, drop_locks, git, git_is_running, names, text
from .work import Item, ahead, at_remotes, contains, elsewhere, existing, head_of, references

MAX_FILE_BYTES = 10 * 1024 * 1024
MAX_NAMED = 20
POINTER = b"version https://git-lfs.github.com/spec/v1\n"
MAX_POINTER_BYTES = 1024
NOT_RESTORED = b"longhaul-not-restored"
CLOSED = re.compile(rb"^warning: could not open directory '(.*)': ", re.M)
UNDER_WAY = ["MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply", "BISECT_LOG"]


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
    """Tracked files that a restore could not bring back (agent/workspace/tracked.py), which the index passes over. One that is there again,
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


def read_anew(paths, env=None):
    """Takes from the index what it claims to have seen of tracked files, and its marks not to look: git reads these files again."""
    staged = [line for line in names("ls-files", "-z", "--stage") if line.split(b"\t", 1)[1] in paths]
    git("update-index", "-z", "--index-info", given=b"".join(line + b"\0" for line in staged), env=env)


def distrust_index():
    """An index can say of a changed file that it is as it was; files behind its marks are looked at apart."""
    read_anew({line[2:] for line in names("ls-files", "-z", "-v") if line[:1] == b"H"})
    git("update-index", "-q", "--refresh", ok=(0, 1))


def behind_flags():
    """Tracked files that differ from the index, where the index says not to look (assume-unchanged, skip-worktree)."""
    marked = [line[2:] for line in names("ls-files", "-z", "-v") if line[:1] == b"S" or line[:1].islower()]
    there = [name for name in marked if os.path.lexists(name)]
    if not there:
        return []
    with tempfile.TemporaryDirectory() as folder:
        env = {"GIT_INDEX_FILE": os.path.join(folder, "index")}
        shutil.copyfile(git("rev-parse", "--git-path", "index").stdout.rstrip(b"\n"), env["GIT_INDEX_FILE"])
        read_anew(set(there), env)
        changed = set(git("ls-files", "-z", "--modified", env=env).stdout.split(b"\0"))
    return [name for name in there if name in changed]


def lfs_store():
    return os.path.join(git("rev-parse", "--git-common-dir").stdout.strip(), b"lfs", b"objects")


def refuse_unfinished():
    """@raises Trouble while a merge or rebase is in progress: a commit would end it"""
    folder = git("rev-parse", "--git-dir").stdout.strip()
    for mark in UNDER_WAY:
        if os.path.exists(os.path.join(folder, mark.encode())):
            raise Trouble(f"a merge, rebase or bisect is not finished in the workspace ({mark})")
    if names("ls-files", "-z", "--unmerged"):
        raise Trouble("a merge with conflicts is not finished in the workspace")


def refuse_other_place():
    """@raises Trouble if /workspace is not the top of a repository that Git can use"""
    try:
        top = git("rev-parse", "--show-toplevel").stdout.rstrip(b"\n")
    except Trouble as trouble:
        raise Trouble(f"Git cannot use the repository in /workspace any more ({trouble})") from None
    if os.path.realpath(top) != os.path.realpath(os.getcwdb()):
        raise Trouble(f"/workspace is no Git repository any more: Git takes {text(top)} for its top")


def changed_files():
    """@returns changed and untracked files; folders that cannot be read, in which there may be more"""
    found = git("ls-files", "-z", "--others", "--modified", "--exclude-standard")
    closed = CLOSED.findall(found.stderr)
    return sorted({name for name in found.stdout.split(b"\0") if name}), closed


def is_gone(name):
    """Whether nothing is in a tracked file's place any more, or a folder, or it is beyond a link. What cannot be looked at is not gone."""
    parts = name.split(b"/")
    if any(os.path.islink(b"/".join(parts[:end])) for end in range(1, len(parts))):
        return True
    try:
        return stat.S_ISDIR(os.lstat(name).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False


def add_files(there):
    """Stages files. @returns those that git does not take: not readable, no files, or with a name that it refuses"""
    if not there:
        return []
    is_sparse = git("config", "--bool", "core.sparseCheckout", ok=(0, 1)).stdout.strip() == b"true"
    how = ["--all", "--ignore-errors", *(["--sparse"] if is_sparse else []), "--pathspec-from-file=-", "--pathspec-file-nul"]
    if git("add", *how, given=b"\0".join(there), ok=(0, 1)).returncode == 0:
        return []
    still = set(changed_files()[0])
    return [name for name in there if name in still]


def stage(order):
    """Stages the uncommitted files. @returns those that are left out: name -> (bytes, reason)"""
    left: dict[bytes, tuple[int, str]] = dict.fromkeys(changed_submodules(), (0, "submodule"))
    left.update((name, (0, "not-restored")) for name in not_restored())
    left.update((name, (size_of(name), "hidden")) for name in behind_flags())
    links = submodules()
    add = []
    changed, closed = changed_files()
    lost = lost_of_lfs(changed) if order.get("lfs") else []
    gone = [name for name in changed if name not in links and name not in lost and is_gone(name)]
    if gone:
        # What is in their places is looked at only then.
        git("update-index", "-z", "--force-remove", "--stdin", given=b"".join(name + b"\0" for name in gone))
        changed, closed = changed_files()
    large = too_large(changed, order)
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
    left.update((name, (size_of(name), "not-taken")) for name in [*add_files(add), *closed])
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
        env[f"GIT_{who}_NAME"] = author["name"]
        env[f"GIT_{who}_EMAIL"] = author["email"]
        # The same commit again, if an attempt that is lost with its sandbox had pushed it.
        env.update({f"GIT_{who}_DATE": order["date"]} if "date" in order else {})
    git("commit", "-q", "--no-verify", "-F", "-", given=order["message"].encode(), env=env)
    return git("rev-parse", "HEAD").stdout.decode().strip()


def of_lfs(base, ref):
    """Files changed since the base whose content is only in the workspace's LFS store: a push would leave dangling pointers."""
    if not os.path.isdir(lfs_store()):
        return []
    changed = names("diff", "--name-only", "-z", "--no-renames", "--diff-filter=d", base, ref)
    return [name for name in changed if pointer_of(os.fsencode(ref) + b":" + name)]


def chosen(head, known, onto):
    """
    What is delivered: HEAD; or, if it has nothing, the one local branch that is ahead; or the branch that was delivered before.
    @returns reference and commit
    """
    if head is not None and ahead([head], known) > 0:
        return "HEAD", head
    branches = [(name, commit) for name, commit in references() if name.startswith(b"refs/heads/")]
    further = [(name, commit) for name, commit in branches if ahead([commit], known) > 0]
    if len({commit for _, commit in further}) == 1 and contains(further[0][1], onto):
        return os.fsdecode(further[0][0]), further[0][1]
    if not further and onto and (head is None or not contains(head, onto)):
        return next(((os.fsdecode(name), commit) for name, commit in branches if commit in onto), ("HEAD", head))
    return "HEAD", head


def uncommitted_without_head():
    """Files in a workspace whose branch has no commit: a commit of them would have no history."""
    count = len(names("ls-files", "-z", "--cached", "--others", "--exclude-standard"))
    branch = git("symbolic-ref", "-q", "HEAD", ok=(0, 1)).stdout.strip().removeprefix(b"refs/heads/")
    return [Item(branch, "no-commit", count)] if count else []


def left_over(left, items):
    entries = [
        {
            "path": text(item.path),
            "bytes": 0,
            "reason": item.reason,
            **({"count": item.count} if item.count else {}),
            **({"about": text(item.about)[:200]} if item.about else {}),
        }
        for item in items
    ]
    return entries + [{"path": text(name), "bytes": size, "reason": reason} for name, (size, reason) in left.items()]


def deliver(order):
    at_end = order.get("commit")
    refuse_other_place()
    if not git_is_running():
        drop_locks(git("rev-parse", "--git-common-dir").stdout.strip())
    head, committed, left, items = head_of(), None, {}, []
    base = order["base"].encode()
    known = existing(
        [base, *(commit.encode() for commit in order.get("known", [])), *(at_remotes() if order.get("remotes") else [])]
    )
    if at_end and head is not None:
        refuse_unfinished()
        if order.get("distrust"):
            distrust_index()
        left = stage(order)
        committed = commit_staged(at_end)
    ref, tip = "HEAD", head_of()
    if at_end:
        ref, tip = chosen(tip, known, existing([commit.encode() for commit in order.get("onto", [])]))
        heads = [commit for commit in (tip, head_of()) if commit is not None]
        has_nothing = tip is None or ahead([tip], known) == 0
        items = elsewhere([*known, *heads], sorted(submodules()), has_nothing)
        items += uncommitted_without_head() if head is None else []
    if tip is None and not items:
        raise Trouble("the workspace's repository has no commit")
    beyond, fresh = 0, 0
    if tip is not None:
        fresh = ahead([tip], known, without=at_end["message"] if at_end else None)
        beyond = ahead([tip], [base]) if base in known else -1
        pointers = [] if order.get("lfs") or beyond < 0 else of_lfs(order["base"], ref)
        if pointers:
            raise Trouble(
                f"{len(pointers)} files are kept by Git LFS, whose content is not pushed yet ({text(pointers[0])[:200]}):"
                " take them out of LFS, set git.lfs, or pull the work and push it"
            )
    entries = left_over(left, items)
    answer = {
        "head": "" if tip is None else tip.decode(),
        "tree": "" if tip is None else git("rev-parse", tip.decode() + "^{tree}").stdout.decode().strip(),
        "ref": ref,
        "ahead": beyond,
        "fresh": fresh,
        "leftOut": entries[:MAX_NAMED],
        "leftOutCount": len(entries),
        "isElsewhere": bool(items),
    }
    if committed is not None:
        answer["committed"] = committed
    return answer


def main():
    try:
        answer = deliver(json.load(sys.stdin))
    except Trouble as trouble:
        answer = {"trouble": str(trouble)}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
