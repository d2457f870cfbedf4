"""What Git tracks in a workspace, asked with the tools' rights. Part of the program that saves and restores a workspace: a tracked
path is saved whatever its folder is called, and one that a restore lacks is taken from Git's objects, never read as deleted."""

import os
import stat

MAX_CHECKOUTS = 200
GIT_TIMEOUT_S = 60
MAX_ANSWER_BYTES = 128 << 20
POINTER = b"version https://git-lfs.github.com/spec/v1\n"
MAX_LINK_BYTES = 1 << 16
# Tracked files that could not be brought back, in the repository's folder; agent/delivery/deliver.py reads it too.
NOT_RESTORED = b"longhaul-not-restored"
# No program that the configuration names, no question, no network.
OPTIONS = ["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"]
QUIET = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_LFS_SKIP_SMUDGE": "1"}


def git(checkout, *args, given=b""):
    """@returns what Git prints in the folder; None if there is no Git, or it fails or takes too long"""
    # Imported here because it is slow, and most saves need no Git.
    import subprocess

    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            ["git", *OPTIONS, *args],
            cwd=checkout or b".",
            input=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**env, **QUIET},
            timeout=GIT_TIMEOUT_S,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout if done.returncode == 0 and len(done.stdout) <= MAX_ANSWER_BYTES else None


def names_in(answer):
    return [name for name in (answer or b"").split(b"\0") if name]


def joined(folder, name):
    return folder + b"/" + name if folder else name


def ancestors(path):
    """The folders around a path, innermost first; the workspace itself is b""."""
    while path:
        path = path.rpartition(b"/")[0]
        yield path


def lines_in(path, folders):
    """The lines of a file that says where a repository's folder or further objects are; none if there is no such file."""
    try:
        folder, name = folders.of(path)
        handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        with open(handle, "rb") as file:
            return [line for line in file.read(MAX_LINK_BYTES).splitlines() if line]
    except OSError:
        return []


def is_outside(folder, named):
    """Whether what a file of this folder names is outside of the workspace."""
    top = os.path.realpath(os.getcwdb())
    place = os.path.realpath(os.path.join(top, folder, named))
    return place != top and not place.startswith(top + b"/")


def names_none(checkout, named):
    """Whether the index certainly has no path below a folder of these names: each save asks, and starting Git takes as long as listing
    thousands of files. Paths are whole in the index' versions 2 and 3, unless a part of it is elsewhere (sharedindex)."""
    try:
        folder = joined(checkout, b".git")
        if any(name.startswith(b"sharedindex.") for name in os.listdir(folder)):
            return False
        handle = os.open(joined(folder, b"index"), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(handle, "rb") as file:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_ANSWER_BYTES:
                return False
            index = file.read(MAX_ANSWER_BYTES)
    except OSError:
        return False
    if index[:8] not in (b"DIRC\0\0\0\2", b"DIRC\0\0\0\3"):
        return False
    return not any(os.fsencode(name) + b"/" in index for name in named)


def tracked_below(hidden, checkouts, named):
    """@param hidden folders of the workspace @param checkouts folders that have a `.git` @param named what hidden folders are called
    @returns the paths below the hidden folders that Git tracks, and those folders of which that is not known"""
    of_checkout = {}
    for folder in hidden:
        owner = next((around for around in ancestors(folder) if around in checkouts), None)
        if owner is not None:
            of_checkout.setdefault(owner, []).append(folder)
    patterns = [f":(glob)**/{name}/**" for name in named]
    found, unknown = [], []
    for number, (checkout, folders) in enumerate(of_checkout.items()):
        if names_none(checkout, named):
            continue
        answer = git(checkout, "ls-files", "-z", "--", *patterns) if number < MAX_CHECKOUTS else None
        if answer is None:
            unknown += folders
        found += [joined(checkout, name) for name in names_in(answer)]
    return found, unknown


def marker_of(checkout):
    folder = (git(checkout, "rev-parse", "--absolute-git-dir") or b"").rstrip(b"\n")
    return os.path.join(folder, NOT_RESTORED) if folder else None


def bring_back(missing, checkouts):
    """Takes tracked files that a save did not have from Git's objects. What is not there either is marked in the index, so that no
    command reads its absence as a deletion. @returns the paths that were brought back, and those that were not"""
    back, lacking = [], []
    for checkout in sorted(checkouts)[:MAX_CHECKOUTS]:
        marker = marker_of(checkout)
        if marker is None:
            continue
        marked = read_marker(marker)
        if marked:
            marked &= set(names_in(git(checkout, "ls-files", "-z")))
            git(checkout, "update-index", "-z", "--no-skip-worktree", "--stdin", given=listed(marked))
        gone = dict.fromkeys(names_in(git(checkout, "ls-files", "-z", "--deleted")))
        gone = [name for name in gone if name in marked or is_missing(joined(checkout, name), missing)]
        # Fails if one of them fails, but checks the others out.
        git(checkout, "checkout-index", "-q", "-z", "--stdin", given=listed(gone))
        still = {name for name in gone if not os.path.lexists(joined(checkout, name))}
        if still:
            git(checkout, "update-index", "-z", "--skip-worktree", "--stdin", given=listed(still))
        write_marker(marker, still, marked)
        for name in gone:
            path = joined(checkout, name)
            (lacking if name in still or is_pointer(path) else back).append(path)
    return back, lacking


def is_pointer(path):
    """Whether Git LFS had only the pointer to a file's content."""
    try:
        with open(path, "rb") as file:
            return file.read(len(POINTER)) == POINTER
    except OSError:
        return False


def is_missing(path, missing):
    return path in missing or any((around or b".") in missing for around in ancestors(path))


def listed(names):
    return b"".join(name + b"\0" for name in names)


def read_marker(marker):
    try:
        with open(marker, "rb") as file:
            return set(names_in(file.read(MAX_ANSWER_BYTES)))
    except OSError:
        return set()


def write_marker(marker, names, before):
    if names:
        with open(marker, "wb") as file:
            file.write(listed(names))
    elif before:
        os.unlink(marker)
