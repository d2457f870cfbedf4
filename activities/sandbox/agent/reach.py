"""Whether an address can be reached from here."""

from __future__ import annotations

import socket

DISCARD_PORT = 9


def is_reachable(address: str):
    """Whether the kernel sends anything to the address, by its routes or from a socket bound to a device. The probe is an
    empty datagram to the discard port."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    for device in ("", *(name for _, name in socket.if_nameindex() if name != "lo")):
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
                if device:
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
                probe.sendto(b"", (address, DISCARD_PORT))
            return True
        except OSError:
            pass
    return False
