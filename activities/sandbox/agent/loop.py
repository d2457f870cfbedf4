"""An event loop for descriptors and timers, in one thread."""

from __future__ import annotations

import heapq
import itertools
import selectors
import time
import traceback

from .place import HOME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from _typeshed import FileDescriptorLike

TROUBLE = f"{HOME}/trouble"
# The most bytes read from or written to a pipe or socket before others get their turn.
CHUNK = 1 << 18


class Loop:
    """Calls back when a descriptor is ready, or a time has come. A callback that fails is recorded and its descriptor no longer
    watched."""

    def __init__(self):
        self.selector = selectors.DefaultSelector()
        # When each is due (by the monotonic clock, in seconds), its number, and what it calls.
        self.timers: list[tuple[float, int, Callable[[], object]]] = []
        self.count = itertools.count()

    def watch(self, fd: FileDescriptorLike, events: int, call: Callable[[], object]):
        """@raises KeyError if it is watched already"""
        self.selector.register(fd, events, call)

    def unwatch(self, fd: FileDescriptorLike):
        """Does nothing if it is not watched."""
        try:
            self.selector.unregister(fd)
        except (KeyError, ValueError):
            # Not watched, or closed already.
            pass

    def after(self, seconds: float, call: Callable[[], object]):
        """Calls once, after so many seconds."""
        heapq.heappush(self.timers, (time.monotonic() + seconds, next(self.count), call))

    def run(self):
        """Never returns."""
        while True:
            wait = None
            while self.timers:
                wait = self.timers[0][0] - time.monotonic()
                if wait > 0:
                    break
                self.run_safely(heapq.heappop(self.timers)[2])
                wait = None
            for key, _ in self.selector.select(wait):
                # An earlier callback of this round may have closed it.
                if self.selector.get_map().get(key.fd) is key and not self.run_safely(key.data):
                    self.unwatch(key.fileobj)

    @staticmethod
    def run_safely(call: Callable[[], object]):
        """Records an error in TROUBLE: a bug of ours must not end the sandbox and everything that runs in it."""
        try:
            call()
            return True
        except Exception:
            try:
                with open(TROUBLE, "w") as file:
                    traceback.print_exc(file=file)
            except OSError:
                pass
            return False
