"""Lists the workspace's files, within limits."""

import bisect
import errno
import os
import stat
import time

from ..layers import Levels, are_mounted, status_in
from .tracked import ancestors, is_outside, lines_in, tracked_below
from .tree import MAX_LOOKS, REMOVED, TICK_NS, Folders, fields, is_same, tree_order, uncertain, value_of

# Errors that mean that a path was removed while it was read.
GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
# If more is missing, nothing of the workspace counts as removed.
MAX_MISSING = 20_000


# Parts of a repository's folder without which its history is still whole.
SPARE = (b"hooks", b"logs", b"info")


class Unlike:
    """How an open folder of the workspace differs from the base's; from nothing, if the workspace has no base."""

    def __init__(self, levels):
        self.base = levels.here.in_base() if levels else {}
        self.changes = levels.here.in_changes() if levels else {}
        self.seen, self.same = set(), set()

    def is_of_base(self, name, item):
        """Whether an entry is the base's own: then nothing at or below it differs."""
        self.seen.add(name)
        before = self.base.get(name)
        if before is None or name in self.changes or before.inode() != item.inode():
            return False
        self.same.add(name)
        return True

    def has_folder(self, name, info):
        """Whether the base has such a folder: then only what is in it can differ."""
        before = self.base.get(name)
        try:
            return before is not None and before.stat(follow_symlinks=False).st_mode == info.st_mode
        except OSError:
            return False

    def gone(self):
        return [name for name in self.base if name not in self.seen]


class Survey:
    """`entries` is the listing. `skipped` has the paths that are not in it, and why: (path, bytes, reason). Nothing is known of
    the paths in `unread` and of those below them. With a base, only folders that the session changed are looked at."""

    def __init__(self, limits, rebuilt, before=None, also=None):
        """`before`: a listing whose files are saved, of any size. `also`: paths in rebuilt folders that are listed; None: those
        that Git tracks."""
        self.limits = limits
        self.rebuilt = rebuilt
        self.before = before or {}
        # Rebuilt folders; folders with a `.git`; for a folder in a repository's own folder, that one.
        self.hidden, self.checkouts, self.repositories = [], set(), {}
        self.unknown = []
        self.entries = {}
        self.skipped = []
        self.unread = []
        self.fresh = []
        self.room = limits["listingBytes"]
        # Entries of skipped folders count too; otherwise reading them could take forever.
        self.looks_left = 4 * limits["entries"]
        self.folders = Folders(0o500, levels=Levels() if are_mounted() else None)
        try:
            self.walk()
            if also is None and self.hidden:
                also, self.unknown = tracked_below(self.hidden, self.checkouts, rebuilt)
            self.add(also or [])
            self.settle()
            self.note_outside()
        finally:
            self.folders.close()

    def note_outside(self):
        """Marks repositories of which a part is outside of the workspace, where no save looks: what is here is not whole."""
        for checkout in self.checkouts:
            path = checkout + b"/.git" if checkout else b".git"
            kind = self.entries.get(path, b"d")[:1]
            # A link may name the folder, too.
            named = [b".git"] if kind == b"l" else [line[8:] for line in lines_in(path, self.folders) if line[:8] == b"gitdir: "]
            if kind != b"d" and any(is_outside(checkout, name) for name in named):
                self.repositories[path] = path
                self.skip(path + b"/objects", 0, "repository")
        for own in set(self.repositories.values()):
            path = own + b"/objects/info/alternates"
            if path in self.entries and any(
                is_outside(own + b"/objects", name) for name in lines_in(path, self.folders) if not name.startswith(b"#")
            ):
                self.skip(path, 0, "repository")

    def walk(self):
        self.stale_ns = time.time_ns() - TICK_NS
        todo = [b""]
        while todo:
            path = todo.pop()
            try:
                inner = self.list_folder(path)
            except OSError as error:
                if error.errno in GONE and path:
                    self.entries.pop(path, None)
                else:
                    self.skip(path, 0, "not-readable")
                continue
            if inner is None:
                self.skip(path, 0, "too-many")
            else:
                todo.extend(sorted(inner, reverse=True))

    def skip(self, path, size, reason):
        self.skipped.append((path, size, reason))
        if reason in ("not-readable", "too-many"):
            self.unread.append(path)

    def list_folder(self, path):
        """Lists one folder. @returns its folders; None if it has more entries than there is room for. @raises OSError"""
        folder = self.folders.open(path)
        prefix = path + b"/" if path else b""
        own = self.repositories.get(path)
        most = min(self.limits["entries"] - len(self.entries), self.looks_left)
        found, inner, fresh, skipped, used = {}, [], [], [], 0
        unlike = Unlike(self.folders.levels)
        with os.scandir(folder) as items:
            for item in items:
                name = os.fsencode(item.name)
                here = prefix + name
                if unlike.is_of_base(name, item):
                    continue
                self.looks_left -= 1
                try:
                    info = item.stat(follow_symlinks=False)
                    target = os.readlink(name, dir_fd=folder) if item.is_symlink() else b""
                except OSError as error:
                    if error.errno not in GONE:
                        raise
                    continue
                value = value_of(info, target)
                is_folder = value is not None and value.startswith(b"d")
                if value is None:
                    continue
                if is_folder and own is None and item.name in self.rebuilt:
                    self.hidden.append(here)
                    continue
                reason = self.refusal(here, value, info, folder if own else None)
                if reason:
                    skipped.append((here, info.st_size, reason))
                    continue
                if is_folder:
                    inner.append(here)
                    if unlike.has_folder(name, info):
                        continue
                elif value.startswith(b"f") and info.st_ctime_ns > self.stale_ns:
                    fresh.append(here)
                found[here] = value
                used += len(here) + len(value) + 2
                if len(found) > most or used > self.room:
                    return None
        for name in unlike.gone():
            found[prefix + name] = REMOVED
            used += len(prefix) + len(name) + len(REMOVED) + 2
        if len(found) > most or used > self.room:
            return None
        self.entries.update(found)
        self.fresh += fresh
        self.skipped += skipped
        self.room -= used
        self.note_repositories(path, prefix, {prefix + name for name in unlike.same} | {*found, *inner}, inner)
        return inner

    def refusal(self, path, value, info, in_repository):
        """Why a path is not listed, if so. A repository's files are limited together; a file that is saved already stays."""
        if len(path) > self.limits["pathBytes"]:
            return "path-too-long"
        if not value.startswith(b"f"):
            return None
        if in_repository is not None:
            # Otherwise it would be found while it is packed, when the rest is packed already.
            readable = info.st_uid == os.geteuid() or os.access(os.path.basename(path), os.R_OK, dir_fd=in_repository)
            return None if readable else "not-readable"
        if info.st_size > self.limits["fileBytes"] and not is_same(self.before.get(path), value):
            return "too-large"
        return None

    def note_repositories(self, path, prefix, found, inner):
        """Notes which of a listed folder's folders belong to a repository."""
        own = self.repositories.get(path)
        if own is None and prefix + b".git" in found:
            self.checkouts.add(path)
        is_own_folder = all(prefix + name in found for name in (b"HEAD", b"objects", b"refs"))
        if own is None and is_own_folder and path:
            own = self.repositories[path] = path
        for here in inner:
            name = here[len(prefix) :]
            # Objects of Git LFS are files of their own: one may lack without harm to the others.
            if own is not None and not (is_own_folder and name == b"lfs"):
                self.repositories[here] = own
            elif own is None and name == b".git":
                self.repositories[here] = here

    def add(self, paths):
        """Lists single paths, and the folders around them."""
        seen = set(self.entries)
        for path in sorted(paths, key=tree_order):
            wanted = [around for around in ancestors(path) if around and around not in seen]
            for here in [*reversed(wanted), path]:
                seen.add(here)
                try:
                    folder, name = self.folders.of(here)
                    info = os.stat(name, dir_fd=folder, follow_symlinks=False)
                    target = os.readlink(name, dir_fd=folder) if stat.S_ISLNK(info.st_mode) else b""
                except OSError as error:
                    if error.errno not in GONE:
                        self.skip(here, 0, "not-readable")
                    elif self.was_in_base(here):
                        self.entries[here] = REMOVED
                    continue
                value = value_of(info, target)
                if value is None or (self.folders.levels and self.folders.levels.here.is_of_base(name, info)):
                    continue
                reason = self.refusal(here, value, info, None)
                self.room -= len(here) + len(value) + 2
                if self.room < 0 or len(self.entries) >= self.limits["entries"]:
                    reason = "too-many"
                if reason:
                    self.skip(here, info.st_size, reason)
                    continue
                self.entries[here] = value
                if value.startswith(b"f") and info.st_ctime_ns > self.stale_ns:
                    self.fresh.append(here)

    def was_in_base(self, path):
        """Whether the base has a path that is not in its folder, the one that was opened last; of one that is gone, the listing says
        so."""
        parent, _, name = path.rpartition(b"/")
        levels = self.folders.levels
        return bool(levels) and self.folders.stack[-1][0] == parent and status_in(name, levels.here.base) is not None

    def settle(self):
        """Reads the times of recently written files again, and marks files that are written continuously."""
        for _ in range(MAX_LOOKS - 1):
            if not self.fresh:
                return
            time.sleep(TICK_NS / 10**9)
            stale_ns = time.time_ns() - TICK_NS
            again, self.fresh = sorted(self.fresh, key=tree_order), []
            for path in again:
                try:
                    folder, name = self.folders.of(path)
                    info = os.stat(name, dir_fd=folder, follow_symlinks=False)
                except OSError:
                    info = None
                value = info and value_of(info)
                # A path that is no longer a file is marked like a file that keeps changing.
                if value and value.startswith(b"f"):
                    self.entries[path] = value
                if info is None or not value or not value.startswith(b"f") or info.st_ctime_ns > stale_ns:
                    self.fresh.append(path)
        for path in self.fresh:
            self.entries[path] = uncertain(self.entries[path])

    def keep(self, before, paths):
        """Copies these paths and everything below them from an earlier listing. @returns the files among them"""
        kept = set()
        known = sorted(before, key=tree_order) if paths else []
        keys = [tree_order(path) for path in known]
        for path in paths:
            now = self.entries.get(path, b"d")
            at = bisect.bisect_left(keys, tree_order(path))
            while at < len(known) and (known[at] == path or not path or known[at].startswith(path + b"/")):
                here, value = known[at], before[known[at]]
                at += 1
                if here == path and not (now.startswith(b"f") and value.startswith(b"f")):
                    continue
                if here != path and (here in self.entries or not now.startswith(b"d")):
                    continue
                self.room -= len(here) + len(value) + 2
                if self.room < 0 or len(self.entries) >= self.limits["entries"]:
                    return kept
                self.entries[here] = value
                if value.startswith(b"f"):
                    kept.add(here)
        return kept

    def repository_of(self, path):
        return self.repositories.get(path) or self.repositories.get(path.rpartition(b"/")[0])

    def keep_whole(self, before, most):
        """A repository is saved whole or not at all: half of one is broken. One with a part that cannot be saved, or too large,
        stays as it was before. @returns the files that were saved before and stay"""
        sizes = {}
        for path, value in self.entries.items():
            own = self.repository_of(path)
            if own is not None:
                sizes[own] = sizes.get(own, 0) + fields(value)[2]
        broken = set()
        for path, _, _ in self.skipped:
            own = self.repository_of(path)
            if own not in (None, path) and path[len(own) + 1 :].split(b"/")[0] not in SPARE:
                broken.add(own)
        total = sum(size for own, size in sizes.items() if own not in broken)
        for own in sorted(sizes, key=lambda own: (-sizes[own], own)):
            if own not in broken and total > most:
                total -= sizes[own]
                broken.add(own)
        if not broken:
            return set()

        def inside(path):
            return any(around in broken for around in ancestors(path))

        self.entries = {path: v for path, v in self.entries.items() if path not in broken and not inside(path)}
        self.skipped = [item for item in self.skipped if not inside(item[0])]
        self.unread = [path for path in self.unread if not inside(path)]
        before_too = [own for own in broken if before.get(own, b"").startswith(b"d")]
        self.entries.update((own, before[own]) for own in before_too)
        for own in sorted(broken):
            self.skipped.append((own, sizes.get(own, 0), "repository-as-before" if own in before else "repository"))
        return self.keep(before, before_too)

    def missing(self):
        """Paths that are there and not in the listing, as they are written into it. In them, nothing counts as removed."""
        found = {path or b".": reason for path, _, reason in self.skipped}
        found.update((path, "not-asked") for path in self.unknown)
        if len(found) > MAX_MISSING:
            return {b".": "too-many"}
        return found

    def drop_largest(self, most):
        """Skips the largest files until the rest is within `most` bytes. Those of a repository stay: it is whole or not there."""
        files = [(path, fields(value)[2]) for path, value in self.entries.items() if value.startswith(b"f")]
        total = sum(size for _, size in files)
        sizes = {path: size for path, size in files if self.repository_of(path) is None}
        for path in sorted(sizes, key=lambda path: (-sizes[path], path)):
            if total <= most:
                break
            total -= sizes[path]
            del self.entries[path]
            self.skipped.append((path, sizes[path], "workspace-too-large"))
