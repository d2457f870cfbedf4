"""Lists the workspace's files, within limits. Part of the program that saves and restores a workspace: see sources.ts."""

import bisect
import errno
import os
import time

# Errors that mean that a path was removed while it was read.
GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


class Survey:
    """`entries` is the listing. `skipped` has the paths that are not in it, and why: (path, bytes, reason). Nothing is known of
    the paths in `unread` and of those below them."""

    def __init__(self, limits, rebuilt):
        self.limits = limits
        self.rebuilt = rebuilt
        self.entries = {}
        self.skipped = []
        self.unread = []
        self.fresh = []
        self.room = limits["listingBytes"]
        # Entries of skipped folders count too; otherwise reading them could take forever.
        self.looks_left = 4 * limits["entries"]
        self.folders = Folders(0o500)
        try:
            self.walk()
            self.settle()
        finally:
            self.folders.close()

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
        most = min(self.limits["entries"] - len(self.entries), self.looks_left)
        found, inner, fresh, skipped, used = {}, [], [], [], 0
        with os.scandir(folder) as items:
            for item in items:
                name = os.fsencode(item.name)
                here = prefix + name
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
                if value is None or (is_folder and item.name in self.rebuilt):
                    continue
                if len(here) > self.limits["pathBytes"]:
                    skipped.append((here, info.st_size, "path-too-long"))
                    continue
                if info.st_size > self.limits["fileBytes"] and value.startswith(b"f"):
                    skipped.append((here, info.st_size, "too-large"))
                    continue
                found[here] = value
                used += len(here) + len(value) + 2
                if len(found) > most or used > self.room:
                    return None
                if is_folder:
                    inner.append(here)
                elif value.startswith(b"f") and info.st_ctime_ns > self.stale_ns:
                    fresh.append(here)
        self.entries.update(found)
        self.fresh += fresh
        self.skipped += skipped
        self.room -= used
        return inner

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
                if not value or not value.startswith(b"f") or info.st_ctime_ns > stale_ns:
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

    def drop_largest(self, most):
        """Skips the largest files until the rest is within `most` bytes."""
        sizes = {path: fields(value)[2] for path, value in self.entries.items() if value.startswith(b"f")}
        total = sum(sizes.values())
        for path in sorted(sizes, key=lambda path: (-sizes[path], path)):
            if total <= most:
                break
            total -= sizes[path]
            del self.entries[path]
            self.skipped.append((path, sizes[path], "workspace-too-large"))
