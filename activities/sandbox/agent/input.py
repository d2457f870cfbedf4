"""A command's input: given at its start, or fed to it in pieces while it runs."""

from __future__ import annotations

import os
import selectors

from .loop import CHUNK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .loop import Loop


class Input:
    """Sizes and offsets in bytes, from the beginning of all input."""

    def __init__(self, loop: Loop):
        self.loop = loop
        # Our end of the pipe; None if the command gets no input, and once the pipe is closed.
        self.fd: int | None = None
        self.flowing = False
        self.over = False
        # What is not written yet.
        self.rest = memoryview(b"")
        # Bytes so far, whether more will follow, and callbacks of requests that wait to send more.
        self.size = 0
        self.more = False
        self.feeders: list[Callable[[], object]] = []
        # Names of the named pieces so far.
        self.named: set[str] = set()
        # Whether pieces are kept until the command reads them, with nobody waiting for that.
        self.keeps = False

    def begin(self, data: bytes, more: bool):
        """@returns whether it needs a pipe, whose end goes to `fd`"""
        self.rest = memoryview(data)
        self.size, self.more = len(data), more
        return bool(data) or more

    def flow(self):
        """Called once the program runs and can read."""
        if self.fd is not None:
            self.flowing = True
            os.set_blocking(self.fd, False)
            self.loop.watch(self.fd, selectors.EVENT_WRITE, self.feed)

    def offset_of(self, request: dict[str, Any]):
        """The offset of a piece. A named piece is appended, but only once."""
        if "offset" in request:
            return request["offset"]
        if request["once"] in self.named:
            return -1
        self.named.add(request["once"])
        return self.size

    def take(self, offset: int, data: bytes, last: bool, done: Callable[[], object]):
        """Adds a piece. A repeated request, whose first answer was lost, adds nothing. `done` is called once there is room
        for the next piece."""
        self.feeders.append(done)
        if offset == self.size and not self.over:
            self.size += len(data)
            self.more = not last
            self.rest = memoryview(bytes(self.rest) + data)
            if self.flowing and self.fd is not None:
                self.loop.unwatch(self.fd)
                self.loop.watch(self.fd, selectors.EVENT_WRITE, self.feed)
        if self.fd is None or self.keeps or (self.more and not self.rest):
            self.release_feeders()

    def release_feeders(self):
        """Answers the requests that wait to send more."""
        feeders, self.feeders = self.feeders, []
        for done in feeders:
            done()

    def feed(self):
        """Writes what the pipe takes."""
        if self.fd is None:
            return
        try:
            self.rest = self.rest[os.write(self.fd, self.rest[:CHUNK]) :]
        except BlockingIOError:
            return
        except OSError:
            # The command has closed it.
            self.rest, self.more = memoryview(b""), False
        if self.rest:
            return
        if self.more:
            self.loop.unwatch(self.fd)
        else:
            self.close()
        self.release_feeders()

    def close(self):
        """Ends the input: the command reads its end."""
        if self.fd is not None:
            self.loop.unwatch(self.fd)
            os.close(self.fd)
            self.fd, self.flowing = None, False
            self.rest = memoryview(b"")

    def end(self):
        """The command has ended: accepts no more input and releases waiting requests."""
        self.close()
        self.over = True
        self.release_feeders()
