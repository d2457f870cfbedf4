"""Hashes what a project's set-up depends on, packs what it made below the workspace, and unpacks that in another sandbox. Runs as
a command, with the tools' rights. A problem is reported in the answer and does not fail a set-up.

Input: {"do", "commands", "names", "rebuilt"}; `names`: patterns of files that name packages.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import subprocess
import sys

from .dependencies import AGAIN, WORKSPACE, are_of_base, named_by

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# In the home folder, which is kept as it is.
FOLDER = os.path.join(os.path.expanduser("~"), ".longhaul-setup")
BEFORE = f"{FOLDER}/before"
PACK = f"{FOLDER}/workspace.tar"
MAX_PATHS = 300_000
MAX_HASHED_BYTES = 512 << 20
# Limit for what is kept of home and workspace together.
MAX_KEPT_BYTES = 2 << 30


class Unable(Exception):
    """The text is for people: why a result cannot be kept."""


def walk(rebuilt: list[str], inside_rebuilt: bool):
    """@yields path, status, and whether it is in a folder that is recreated; a folder comes before its contents"""
    folders = [(b"", False)]
    count = 0
    while folders:
        folder, made = folders.pop()
        try:
            entries = sorted(os.scandir(os.path.join(WORKSPACE, folder)), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            count += 1
            if count > MAX_PATHS:
                raise Unable(f"the workspace has more than {MAX_PATHS} paths")
            path = os.path.join(folder, entry.name)
            status = entry.stat(follow_symlinks=False)
            below = made or entry.name.decode(errors="replace") in rebuilt
            yield path, status, below
            if stat.S_ISDIR(status.st_mode) and (inside_rebuilt or not below):
                folders.append((path, below))


def digest(path: bytes, status: os.stat_result):
    """@raises OSError"""
    if stat.S_ISLNK(status.st_mode):
        return hashlib.sha256(os.readlink(os.path.join(WORKSPACE, path))).hexdigest()
    if not stat.S_ISREG(status.st_mode):
        return ""
    with open(os.path.join(WORKSPACE, path), "rb") as file:
        whole = hashlib.sha256()
        while piece := file.read(1 << 20):
            whole.update(piece)
    return whole.hexdigest()


def hash_of(order: dict[str, Any], wanted: Callable[[bytes], bool]):
    """Over the wanted files: paths, modes, contents. @raises Unable, OSError"""
    whole = hashlib.sha256()
    room = MAX_HASHED_BYTES
    for path, status, below in walk(order["rebuilt"], False):
        if below or path == b".git" or path.startswith(b".git/") or not wanted(path):
            continue
        room -= status.st_size
        if room < 0:
            raise Unable(f"the files that it depends on have more than {MAX_HASHED_BYTES >> 20} MiB")
        whole.update(repr((path, status.st_mode, digest(path, status))).encode())
    return whole.hexdigest()


def do_locks(order: dict[str, Any]):
    """{"hash"} of the files that name packages, and {"commit"} of a repository that has one."""
    is_lock = named_by(order)
    if not os.path.lexists(os.path.join(WORKSPACE, b".git")):
        return {"hash": hash_of(order, is_lock)}
    commit = git("rev-parse", "--verify", "--quiet", "HEAD^{commit}").strip()
    # Without a commit nobody can tell later whose files these were.
    return {"hash": hash_of(order, is_lock), "commit": commit} if commit else {}


def do_same(order: dict[str, Any]):
    """Whether the files that name packages are those of the base."""
    return {"same": are_of_base(order)}


def do_ran(_order: dict[str, Any]) -> dict[str, Any]:
    """The commands ran in this workspace, on top of its base."""
    try:
        os.unlink(os.path.join(WORKSPACE, AGAIN))
    except FileNotFoundError:
        pass
    return {}


def do_outside(order: dict[str, Any]):
    """Whether the commands made or changed anything that is not in a rebuilt folder, or nobody can tell."""
    status = git(
        "status", "--porcelain", "-z", "--no-renames", "--ignored", "--untracked-files=normal", "--ignore-submodules=none"
    )
    head = git("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    paths = [entry[3:] for entry in status.split("\0") if entry]
    return {"outside": not head or not all(set(path.split("/")) & set(order["rebuilt"]) for path in paths)}


def do_contains(order: dict[str, Any]):
    """Whether the current commit is the given one or comes after it."""
    return {"contains": git("merge-base", order["commit"], "HEAD").strip() == order["commit"]}


def git(*arguments: str):
    """@returns its output, empty if it fails; a replacement of a commit by another one is not followed"""
    command = ["git", "-C", WORKSPACE, "--no-replace-objects", *arguments]
    try:
        return subprocess.run(command, capture_output=True, check=False).stdout.decode(errors="replace")
    except OSError:
        return ""


def do_begin(order: dict[str, Any]):
    """Records the files that exist before the commands run, and hashes them."""
    if f"{FOLDER}/".startswith(f"{WORKSPACE.decode()}/"):
        raise Unable("the image gives uid 1000 no home")
    if shutil.which("tar") is None:
        raise Unable("the image has no tar")
    os.makedirs(FOLDER, mode=0o700, exist_ok=True)
    with open(BEFORE, "wb") as file:
        for path, status, _ in walk(order["rebuilt"], True):
            file.write(path + b"\0" + state_of(status) + b"\0")
    return {"hash": hash_of(order, lambda path: True)}


def state_of(status: os.stat_result):
    """A value that differs if the entry has changed. Constant for folders: their entries are compared instead."""
    if stat.S_ISDIR(status.st_mode):
        return b"folder"
    return f"{status.st_mode} {status.st_size} {status.st_mtime_ns}".encode()


def do_pack(order: dict[str, Any]):
    """Packs what the commands made. {"onlyRebuilt", "bytes"} @raises Unable, OSError"""
    with open(BEFORE, "rb") as file:
        fields = file.read().split(b"\0")
    before = dict(zip(fields[0::2], fields[1::2]))
    made: list[bytes] = []
    covered: set[bytes] = set()
    outside = size = 0
    for path, status, below in walk(order["rebuilt"], True):
        known = before.pop(path, None)
        if known is None:
            size += status.st_blocks * 512
            outside += not below
            # Entries of a new folder are packed with that folder.
            if os.path.dirname(path) not in covered:
                made.append(path)
            if stat.S_ISDIR(status.st_mode):
                covered.add(path)
        elif known != state_of(status):
            raise Unable(f"it changes files of the workspace: {path.decode(errors='replace')}")
    before.pop(b"", None)
    if before:
        raise Unable(f"it removes files of the workspace: {min(before).decode(errors='replace')}")
    os.unlink(BEFORE)
    size += home_bytes()
    if size > MAX_KEPT_BYTES:
        raise Unable(f"home and workspace take {size >> 20} MiB more, and at most {MAX_KEPT_BYTES >> 20} are kept")
    tar(["--create", "--null", "--files-from=-"], b"\0".join(made))
    return {"onlyRebuilt": outside == 0, "bytes": size}


def home_bytes():
    """Bytes on the disk below the home folder."""
    total = 0
    device = os.stat(os.path.dirname(FOLDER)).st_dev
    folders = [os.path.dirname(FOLDER)]
    while folders:
        try:
            for entry in os.scandir(folders.pop()):
                status = entry.stat(follow_symlinks=False)
                total += status.st_blocks * 512
                # Skip other devices: shared caches are a separate volume.
                if stat.S_ISDIR(status.st_mode) and status.st_dev == device:
                    folders.append(entry.path)
        except OSError:
            continue
    return total


def do_unpack(order: dict[str, Any]):
    """Idempotent: files that are there stay. {"unpacked"} @raises Unable, OSError"""
    found = os.path.exists(PACK)
    if found:
        # Files that this session already has stay as they are.
        tar(["--extract", "--skip-old-files"], b"")
    do_clear(order)
    return {"unpacked": found}


def do_clear(order: dict[str, Any]) -> dict[str, Any]:
    shutil.rmtree(FOLDER, ignore_errors=True)
    return {}


def tar(arguments: list[str], names: bytes):
    """@raises Unable with the last line that it printed"""
    command = ["tar", "--directory=/workspace", f"--file={PACK}", *arguments]
    done = subprocess.run(command, input=names, capture_output=True, check=False)
    if done.returncode != 0:
        last = done.stderr.decode(errors="replace").strip().split("\n")[-1]
        raise Unable(f"tar says: {last[:200]}")


def answer(order: dict[str, Any]):
    try:
        return globals()["do_" + order["do"]](order)
    except Unable as error:
        return {"unable": str(error)}
    except OSError as error:
        return {"unable": f"{error.strerror}: {error.filename!r}"[:300]}


def main():
    print(json.dumps(answer(json.load(sys.stdin))))


if __name__ == "__main__":
    main()
