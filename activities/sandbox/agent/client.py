"""Connected workers and the requests they wait for."""

from __future__ import annotations

import binascii
import collections
import json
import selectors
import time

from .loop import CHUNK

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from typing import Any

    from .command import Command
    from .supervisor import Supervisor

PROGRESS_SECONDS = 0.25


def line_of(message: dict[str, Any]):
    """A message as a line of JSON, bytes in it as base64."""
    return json.dumps(message, default=base64_of).encode() + b"\n"


def base64_of(value: bytes):
    return binascii.b2a_base64(value, newline=False).decode()


class Waiter:
    """A request that is answered when the command has ended, or after the request's timeout."""

    def __init__(self, client: Client, q: int, command: Command, wants_progress: bool):
        self.client = client
        self.q = q
        self.command = command
        self.wants_progress = wants_progress
        self.sent_at = 0.0
        self.scheduled = False
        self.done = False
        client.waiters[q] = self
        command.listeners.append(self)

    def progress(self):
        """Tells the worker how many bytes of output there are, at most once in PROGRESS_SECONDS."""
        if not self.wants_progress or self.scheduled or self.done:
            return
        self.scheduled = True
        self.client.supervisor.loop.after(max(0, self.sent_at + PROGRESS_SECONDS - time.monotonic()), self.send_progress)

    def send_progress(self):
        self.scheduled = False
        # Progress must not pile up for a worker that does not read.
        if self.done or self.client.outgoing:
            return
        self.sent_at = time.monotonic()
        outputs = self.command.outputs
        self.client.send({"q": self.q, "bytes": outputs["out"].total + outputs["err"].total})

    def finish(self, answer: bool = True):
        """Answers with the command's state, even if it still runs. Only the first call has an effect."""
        if self.done:
            return
        self.done = True
        self.client.waiters.pop(self.q, None)
        if self in self.command.listeners:
            self.command.listeners.remove(self)
        if answer:
            self.client.send({"q": self.q, "ok": self.answer()})

    def answer(self) -> dict[str, Any]:
        return self.command.state()


class Client:
    """One connected worker."""

    def __init__(self, supervisor: Supervisor, sock: socket.socket):
        self.supervisor = supervisor
        self.sock = sock
        self.incoming = bytearray()
        self.searched = 0
        self.outgoing: collections.deque[memoryview] = collections.deque()
        # By the number of the request.
        self.waiters: dict[int, Waiter] = {}
        sock.setblocking(False)
        supervisor.loop.watch(sock, selectors.EVENT_READ, self.ready)

    def ready(self):
        """Reads requests and writes answers, as far as the socket lets it."""
        try:
            if self.outgoing:
                self.flush()
            data = self.sock.recv(CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.close()
            return
        self.incoming += data
        while (end := self.incoming.find(b"\n", self.searched)) >= 0:
            line = bytes(self.incoming[:end])
            del self.incoming[: end + 1]
            self.searched = 0
            self.supervisor.handle(self, json.loads(line))
        self.searched = len(self.incoming)

    def close(self):
        """Ends the connection. Its requests are forgotten; their commands go on."""
        if self.sock.fileno() < 0:
            return
        for waiter in list(self.waiters.values()):
            waiter.finish(answer=False)
        self.supervisor.loop.unwatch(self.sock)
        self.sock.close()
        self.outgoing.clear()

    def send(self, message: dict[str, Any]):
        """Sends a message, now or when the worker reads again. Does nothing once the connection is closed."""
        self.send_line(line_of(message))

    def send_line(self, line: bytes):
        if self.sock.fileno() < 0:
            return
        self.outgoing.append(memoryview(line))
        if len(self.outgoing) == 1:
            try:
                self.flush()
            except OSError:
                self.close()

    def flush(self):
        """@raises OSError if the worker is gone"""
        try:
            while self.outgoing:
                sent = self.sock.send(self.outgoing[0])
                if sent == len(self.outgoing[0]):
                    self.outgoing.popleft()
                else:
                    self.outgoing[0] = self.outgoing[0][sent:]
        except BlockingIOError:
            pass
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if self.outgoing else 0)
        self.supervisor.loop.selector.modify(self.sock, events, self.ready)
