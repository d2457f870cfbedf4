"""Hashes a Dockerfile's build context, or writes it as a tar to standard output. Runs as a command, with the tools' rights; links
in the context are not followed. Input: {"do": "hash"|"tar", "dockerfile", "context"}."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import stat
import sys
import tarfile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO

    Rules = list[tuple[bool, re.Pattern[str]]]

WORKSPACE = "/workspace"
MAX_PATHS = 300_000
# Docker's name for the ignore file; a Dockerfile's own ignore file replaces it.
IGNORE = ".dockerignore"
# The Dockerfile's name in the context if it lies outside, as Docker's client does it.
OUTSIDE = ".longhaul-dockerfile"


# What the engine's classic builder does not support: it would fail with an unclear message, or misread it. Source: the Dockerfile
# reference of BuildKit 0.13, compared with that of moby 20.10.
BUILDKIT_FLAGS = {
    "RUN": ["mount", "network", "security", "device"],
    "COPY": ["link", "parents", "exclude", "chmod"],
    "ADD": ["link", "checksum", "keep-git-dir", "exclude", "chmod", "unpack"],
}
HERE_DOCUMENT = re.compile(r"""(?:^|\s)\d*<<-?(["']?)([A-Za-z_][\w.-]*)\1(?=\s|$)""")


class Unable(Exception):
    """The text is for people."""


def pattern(text: str):
    """Converts a line of .dockerignore to a regular expression for whole paths. Source: moby's patternmatcher."""
    out = ""
    at = 0
    while at < len(text):
        if text[at : at + 2] == "**":
            at += 2
            if text[at : at + 1] == "/":
                at += 1
            out += ".*" if at >= len(text) else "(.*/)?"
            continue
        sign = text[at]
        end = text.find("]", at + 2)
        if sign == "*":
            out += "[^/]*"
        elif sign == "?":
            out += "[^/]"
        elif sign == "[" and end > 0:
            out += text[at : end + 1]
            at = end
        elif sign == "\\" and at + 1 < len(text):
            at += 1
            out += re.escape(text[at])
        else:
            out += re.escape(sign)
        at += 1
    return re.compile(out)


def rules_of(text: str):
    """@returns whether it is an exception, and its expression, for each rule in order"""
    found: Rules = []
    for line in text.lstrip("\ufeff").splitlines():
        if line.startswith("#") or not line.strip():
            continue
        line = line.strip()
        keeps = line.startswith("!")
        path = os.path.normpath(line[1:].strip() if keeps else line).lstrip("/")
        if path not in ("", "."):
            found.append((keeps, pattern(path)))
    return found


def is_ignored(path: str, rules: Rules):
    """The last rule that matches the path or a folder above it decides."""
    parts = path.split("/")
    above = ["/".join(parts[: n + 1]) for n in range(len(parts))]
    ignored = False
    for keeps, expression in rules:
        if ignored == keeps and any(expression.fullmatch(place) for place in above):
            ignored = not keeps
    return ignored


def inside(path: str):
    """A path of the workspace with its links resolved. @raises Unable if it leads out of the workspace"""
    place = os.path.realpath(os.path.join(WORKSPACE, path))
    if place != WORKSPACE and not place.startswith(WORKSPACE + "/"):
        raise Unable(f"{path} leads out of the workspace")
    return place


def text_of(path: str):
    """The file's text; None if there is no such file."""
    try:
        with open(inside(path), encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        return None


def instructions(text: str):
    """@yields line, instruction, flags, the rest, and the lines after it; continued lines are joined"""
    lines = text.lstrip("\ufeff").splitlines()
    directive = re.search(r"^#\s*escape\s*=\s*(\S)", lines[0] if lines else "", re.I)
    escape = directive.group(1) if directive else "\\"
    at = 0
    while at < len(lines):
        begun, whole, goes_on = at, "", True
        while goes_on and at < len(lines):
            line = lines[at].rstrip()
            at += 1
            if line.lstrip().startswith("#") or (whole and not line):
                continue
            goes_on = line.endswith(escape)
            whole += line[:-1] if goes_on else line
        words = re.match(r"\s*(?:ONBUILD\s+)?(\w+)\s*((?:--\S+\s+)*)(.*)", whole, re.I)
        if words:
            flags = re.findall(r"--([a-z-]+)", words.group(2))
            yield begun + 1, words.group(1).upper(), flags, words.group(3), lines[at:]


def only_buildkit(text: str):
    """@returns the first thing in a Dockerfile that needs BuildKit, with its line; None if nothing does"""
    for line, instruction, flags, rest, behind in instructions(text):
        known = BUILDKIT_FLAGS.get(instruction)
        if known is None:
            continue
        for flag in flags:
            if flag in known:
                return line, f"{instruction} --{flag}"
        found = HERE_DOCUMENT.search(rest)
        if found and any(later.strip() == found.group(2) for later in behind):
            return line, f"a here-document ({instruction} <<{found.group(2)})"
    return None


def walk(root: str, rules: Rules):
    """@yields path in the context, and status; sorted, a folder before its contents"""
    prunes = not any(keeps for keeps, _ in rules)
    folders = [""]
    count = 0
    while folders:
        folder = folders.pop()
        below: list[str] = []
        for entry in sorted(os.scandir(os.path.join(root, folder)), key=lambda entry: entry.name):
            count += 1
            if count > MAX_PATHS:
                raise Unable(f"the context has more than {MAX_PATHS} paths; leave some out by {IGNORE}")
            path = os.path.join(folder, entry.name)
            status = entry.stat(follow_symlinks=False)
            ignored = is_ignored(path, rules)
            if stat.S_ISDIR(status.st_mode) and not (ignored and prunes):
                below.append(path)
            if not ignored:
                yield path, status
        folders += reversed(below)


def context(order: dict[str, Any]):
    """@returns the context's folder, the Dockerfile's name in it, and entries (path, status or None, bytes or None)"""
    root = inside(order["context"])
    if not os.path.isdir(root):
        raise Unable(f"the context {order['context']} is not a folder of the workspace")
    dockerfile = text_of(order["dockerfile"])
    if dockerfile is None:
        raise Unable(f"the workspace has no {order['dockerfile']}")
    needs = only_buildkit(dockerfile)
    if needs is not None:
        raise Unable(
            f"line {needs[0]} of {order['dockerfile']} has {needs[1]}, which only BuildKit builds, and BuildKit cannot build"
            " behind the sandbox's firewall: write it without, or build the image yourself and name it (sandbox.image)"
        )
    place = inside(order["dockerfile"])
    name = os.path.relpath(place, root)
    ignore = text_of(order["dockerfile"] + IGNORE)
    if ignore is None:
        ignore = text_of(os.path.join(os.path.relpath(root, WORKSPACE), IGNORE)) or ""
    entries: dict[str, tuple[os.stat_result | None, bytes | None]] = {
        path: (status, None) for path, status in walk(root, rules_of(ignore))
    }
    if name.startswith("../"):
        name = OUTSIDE
        ignore += f"\n{OUTSIDE}\n"
    # Always sent, even if a rule excludes them: the engine needs them, and applies that rule itself.
    for path, text in ((name, dockerfile), (IGNORE, ignore)):
        if text:
            entries[path] = (None, text.encode("utf-8", "surrogateescape"))
    return root, name, sorted(entries.items())


def tar_info(path: str, root: str, status: os.stat_result | None, data: bytes | None):
    """@returns the entry's head; None for what a context cannot have: sockets, pipes, devices"""
    if data is not None:
        info = tarfile.TarInfo(path)
        info.size, info.mode = len(data), 0o644
        return info
    kinds = {stat.S_IFREG: tarfile.REGTYPE, stat.S_IFDIR: tarfile.DIRTYPE, stat.S_IFLNK: tarfile.SYMTYPE}
    kind = kinds.get(stat.S_IFMT(status.st_mode)) if status is not None else None
    if status is None or kind is None:
        return None
    info = tarfile.TarInfo(path)
    info.type, info.mode, info.mtime = kind, stat.S_IMODE(status.st_mode), int(status.st_mtime)
    if kind == tarfile.REGTYPE:
        info.size = status.st_size
    if kind == tarfile.SYMTYPE:
        info.linkname = os.readlink(os.path.join(root, path))
    return info


class Whole:
    """Reads a file as exactly `size` bytes, even if its length changes meanwhile."""

    def __init__(self, file: BinaryIO, size: int):
        self.file, self.left = file, size

    def read(self, most: int = -1):
        most = self.left if most < 0 else min(most, self.left)
        piece = self.file.read(most)
        self.left -= most
        return piece.ljust(most, b"\0")


def contents(root: str, path: str, info: tarfile.TarInfo, data: bytes | None):
    """@returns a file object with the entry's bytes; None if it has none @raises OSError"""
    if data is not None:
        return io.BytesIO(data)
    if info.type != tarfile.REGTYPE:
        return None
    # The file may have been replaced by a link meanwhile.
    file = os.open(os.path.join(root, path), os.O_RDONLY | os.O_NOFOLLOW)
    return Whole(os.fdopen(file, "rb"), info.size)


class Hash:
    """A file object that hashes what is written to it."""

    def __init__(self):
        self.sum = hashlib.sha256()

    def write(self, data: bytes):
        self.sum.update(data)
        return len(data)


def main():
    order = json.load(sys.stdin)
    try:
        root, name, entries = context(order)
        hashed = Hash() if order["do"] == "hash" else None
        out: Any = hashed or sys.stdout.buffer
        with tarfile.open(fileobj=out, mode="w|", format=tarfile.PAX_FORMAT, errors="surrogateescape") as tar:
            for path, (status, data) in entries:
                info = tar_info(path, root, status, data)
                if info is None:
                    continue
                if hashed:
                    # Modification times do not affect the image.
                    info.mtime = 0
                tar.addfile(info, contents(root, path, info, data))
        if hashed:
            print(json.dumps({"hash": hashed.sum.hexdigest(), "dockerfile": name}))
    except (Unable, OSError) as error:
        print(str(error), file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
