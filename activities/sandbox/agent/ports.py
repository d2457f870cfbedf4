"""Lists the tools' listening sockets, as one JSON text. Runs as uid 1000 in the sandbox, for `longhaul ports`.

With LONGHAUL_PORTS_OF=all it lists those of all users, such as of the services in the sandbox's network namespace."""

from __future__ import annotations

import ipaddress
import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

TOOL_UID = "1000"
LISTENS = "0A"


def address_of(text: str):
    """Parses an address as the kernel writes it: words of four bytes, each in the machine's byte order."""
    words = [bytes.fromhex(text[at : at + 8])[::-1] for at in range(0, len(text), 8)]
    address = ipaddress.ip_address(b"".join(words))
    return str((address.version == 6 and address.ipv4_mapped) or address)


def processes():
    """@returns id and name of the process that holds a socket, by the socket's inode"""
    found: dict[str, dict[str, Any]] = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
                name = file.read().strip()
            for fd in os.listdir(f"/proc/{pid}/fd"):
                target = os.readlink(f"/proc/{pid}/fd/{fd}")
                if target.startswith("socket:["):
                    found.setdefault(target[8:-1], {"pid": int(pid), "process": name})
        except OSError:
            # The process has ended, or is not one of the tools'.
            pass
    return found


def listeners(uids: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Each of these users, or of all if there is none, with port, address, and pid and name of its process, or None if that cannot be inspected."""
    holders, none = processes(), {"pid": None, "process": None}
    for table in ("tcp", "tcp6"):
        try:
            with open(f"/proc/net/{table}", encoding="ascii") as file:
                rows = [line.split() for line in file][1:]
        except OSError:
            # The kernel has no IPv6.
            continue
        for row in rows:
            if row[3] == LISTENS and (not uids or row[7] in uids):
                address, _, port = row[1].partition(":")
                holder = holders.get(row[9], none)
                yield {"port": int(port, 16), "address": address_of(address), **holder}


def main():
    uids = () if os.environ.get("LONGHAUL_PORTS_OF") == "all" else (TOOL_UID,)
    print(json.dumps(sorted(listeners(uids), key=lambda listener: (listener["port"], listener["address"]))))


if __name__ == "__main__":
    main()
