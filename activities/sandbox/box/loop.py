"""Descriptors and timers in one thread. Part of the supervisor: see box-source.ts."""

import heapq
import itertools
import selectors
import time


class Loop:
    def __init__(self):
        self.selector = selectors.DefaultSelector()
        self.timers = []
        self.count = itertools.count()

    def watch(self, fd, events, call):
        self.selector.register(fd, events, call)

    def unwatch(self, fd):
        try:
            self.selector.unregister(fd)
        except KeyError:
            pass

    def after(self, seconds, call):
        heapq.heappush(self.timers, (time.monotonic() + seconds, next(self.count), call))

    def run(self):
        while True:
            wait = None
            while self.timers:
                wait = self.timers[0][0] - time.monotonic()
                if wait > 0:
                    break
                heapq.heappop(self.timers)[2]()
                wait = None
            for key, _ in self.selector.select(wait):
                # An earlier one of this round may have closed it.
                if self.selector.get_map().get(key.fd) is key:
                    key.data()
