"""A command's output, kept within bounds."""

from __future__ import annotations

import os
import struct

TAIL_BYTES = 1 << 20
# Half a million changes between the streams of one command; beyond that the worker does not tell them apart.
TURNS_BYTES = 4 << 20


class Output:
    """One stream, kept in one file: the first `limit` bytes, then a ring buffer of the last 1 MiB."""

    def __init__(self, path: str, limit: int, total: int = 0, kept: int | None = None):
        self.path = path
        self.limit = limit
        self.total = total
        # Set when the disk is full: this many bytes can be read, later output is only counted.
        self.cut = kept if kept is not None and kept != min(total, limit + TAIL_BYTES) else None
        self.fd = None

    @property
    def kept(self):
        """Bytes that can be read."""
        return min(self.total, self.limit + TAIL_BYTES) if self.cut is None else self.cut

    def place(self, position: int):
        """The file offset of the byte at this position of the stream, and how many bytes may follow it contiguously."""
        if position < self.limit:
            return position, self.limit - position
        ring = (position - self.limit) % TAIL_BYTES
        return self.limit + ring, TAIL_BYTES - ring

    def add(self, data: bytes):
        """Takes more of the stream. A disk that is full is no error: from then on bytes are only counted."""
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

    def read(self, offset: int, count: int):
        """At most `count` bytes of the kept output, from `offset` in it."""
        parts: list[bytes] = []
        # If there is a gap, the bytes after the first `limit` are the end of the stream.
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
        """Deletes the kept output; its size stays known, and later output is only counted."""
        self.cut = 0
        try:
            os.unlink(self.path)
        except OSError:
            pass

    def close(self):
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None


def whole_characters(data: bytes):
    """How many bytes come before a character of UTF-8 that is not complete at the end."""
    for back in range(1, min(3, len(data)) + 1):
        byte = data[-back]
        if byte >= 0xC0:
            needed = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4 if byte < 0xF8 else 1
            return len(data) - back if back < needed else len(data)
        if byte < 0x80:
            break
    return len(data)


class Turns(Output):
    """Where, in an output that two streams share, the other stream begins: eight bytes each, twice the position, plus 1 if it is
    standard error that begins. Standard output is first."""

    def __init__(self, path: str):
        super().__init__(path, TURNS_BYTES)
        self.number = 0

    def note(self, number: int, position: int):
        if number != self.number:
            self.number = number
            self.add(struct.pack("<Q", position << 1 | number))


class Side:
    """One of two streams that share an output, in the order in which their bytes arrive."""

    def __init__(self, number: int, output: Output, turns: Turns):
        self.number = number
        self.output = output
        self.turns = turns
        self.torn = b""

    def add(self, data: bytes):
        # The other stream must not come between the bytes of one character.
        data = self.torn + data
        whole = whole_characters(data)
        self.torn = data[whole:]
        self.put(data[:whole])

    def put(self, data: bytes):
        if data:
            self.turns.note(self.number, self.output.total)
            self.output.add(data)

    def close(self):
        self.put(self.torn)
        self.torn = b""
