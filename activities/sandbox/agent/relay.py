"""Copies bytes between its standard streams and the supervisor's socket. Runs as root, once per connected worker."""

from __future__ import annotations

import os
import select
import socket
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

SOCKET = os.environ.get("LONGHAUL_SOCKET", "/var/lib/longhaul/control.sock")
CONNECT_SECONDS = float(os.environ.get("LONGHAUL_CONNECT_SECONDS", 10))
CHUNK = 1 << 18


def connect():
    """@returns the connection to the supervisor; exits with 75 after CONNECT_SECONDS without one"""
    deadline = time.monotonic() + CONNECT_SECONDS
    while True:
        peer = socket.socket(socket.AF_UNIX)
        try:
            peer.connect(SOCKET)
            return peer
        except OSError:
            # The sandbox has only just been started.
            peer.close()
            if time.monotonic() > deadline:
                sys.exit(75)
            time.sleep(0.005)


def write_all(write: Callable[[memoryview], int], data: bytes):
    """@raises OSError"""
    view = memoryview(data)
    while view:
        view = view[write(view) :]


def copy():
    """Copies until either side ends. @raises OSError"""
    peer = connect()
    # The supervisor never blocks on a reader and this process only copies, so blocking writes cannot deadlock.
    while True:
        ready, _, _ = select.select([0, peer], [], [])
        if peer in ready:
            data = peer.recv(CHUNK)
            if not data:
                return
            write_all(lambda view: os.write(1, view), data)
        if 0 in ready:
            data = os.read(0, CHUNK)
            if not data:
                return
            write_all(peer.send, data)


def main():
    try:
        copy()
    except OSError:
        # The worker or the supervisor closed its side: nothing is left to copy.
        pass


if __name__ == "__main__":
    main()
