"""Copies bytes between its standard streams and a server in the sandbox. Runs as uid 1000, once for each connection of
`longhaul forward`.
"""

from __future__ import annotations

import os
import socket
import sys
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

CHUNK_BYTES = 1 << 16


def connect(port: int):
    """Exits with the reason if nothing listens at the port."""
    trouble = None
    for address in ("127.0.0.1", "::1"):
        try:
            return socket.create_connection((address, port))
        except OSError as error:
            trouble = trouble or error
    sys.exit(f"{trouble}")


def send(peer: socket.socket):
    """Standard input to the server, until its end. @raises OSError"""
    while data := os.read(0, CHUNK_BYTES):
        peer.sendall(data)
    peer.shutdown(socket.SHUT_WR)


def receive(peer: socket.socket):
    """The server's bytes to standard output, until its end. @raises OSError"""
    while data := peer.recv(CHUNK_BYTES):
        view = memoryview(data)
        while view:
            view = view[os.write(1, view) :]


def quietly(copy: Callable[[socket.socket], None], peer: socket.socket):
    """Copies until one side closes."""
    try:
        copy(peer)
    except OSError:
        # One side closed: the copy in the other direction ends too, or continues with the remaining bytes.
        pass


def main():
    server = connect(int(os.environ["LONGHAUL_PORT"]))
    threading.Thread(target=quietly, args=(send, server), daemon=True).start()
    quietly(receive, server)
    os._exit(0)


if __name__ == "__main__":
    main()
