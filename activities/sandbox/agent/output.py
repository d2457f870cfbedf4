"""A command's output, kept within bounds. Part of the supervisor: see sources.ts."""

import os

TAIL_BYTES = 1 << 20


class Output:
    """One stream, kept in one file: the first `limit` bytes, after them a ring of the last 1 MiB."""

    def __init__(self, path, limit, total=0, kept=None):
        self.path = path
        self.limit = limit
        self.total = total
        # Set when the disk is full: what came before can be read, the rest is only counted.
        self.cut = kept if kept is not None and kept != min(total, limit + TAIL_BYTES) else None
        self.fd = None

    @property
    def kept(self):
        return min(self.total, self.limit + TAIL_BYTES) if self.cut is None else self.cut

    def place(self, position):
        """Where the byte at this position of the stream lies in the file, and how many may follow it there."""
        if position < self.limit:
            return position, self.limit - position
        ring = (position - self.limit) % TAIL_BYTES
        return self.limit + ring, TAIL_BYTES - ring

    def add(self, data):
        view = memoryview(data)
        try:
            while view and self.cut is None:
                if self.fd is None:
                    self.fd = os.open(self.path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC, 0o600)
                at, room = self.place(self.total)
                written = os.pwrite(self.fd, view[:room], at)
                self.total += written
                view = view[written:]
        except OSError:
            self.cut = min(self.total, self.limit)
        self.total += len(view)

    def read(self, offset, count):
        """Bytes of what is kept, from `offset` in it."""
        parts = []
        # With a gap, what lies behind the head is the end of the stream.
        skipped = self.total - self.kept if self.cut is None else 0
        count = min(count, self.kept - offset)
        if count <= 0:
            return b""
        fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            while count > 0:
                at, room = self.place(offset if offset < self.limit else offset + skipped)
                part = os.pread(fd, min(count, room), at)
                if not part:
                    break
                parts.append(part)
                offset += len(part)
                count -= len(part)
        finally:
            os.close(fd)
        return b"".join(parts)

    def drop(self):
        """Deletes what is kept; its size is still known, and later output is only counted."""
        self.cut = 0
        try:
            os.unlink(self.path)
        except OSError:
            pass

    def close(self):
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None
