"""Gives the tools of a sandbox without a network a proxy at 127.0.0.1: each connection is passed on to the socket that the egress
proxy has for this sandbox.
"""

from __future__ import annotations

import os
import re
import signal
import socket

from egress.splice import splice

from .child import keep_only

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio

EGRESS_FOLDER = "/run/longhaul"
# The usual port for proxies, because of squid.
EGRESS_PORT = 3128
# The user `nobody`: not root, and not an id that tools can signal.
FORWARDER_UID = 65534
GIT_CONFIG = "/etc/gitconfig"
# Proxies forward https, not ssh. `git@host:path` can be replaced for known hosts only.
GIT_HOSTS = ("github.com", "gitlab.com", "bitbucket.org", "codeberg.org")


def egress_listener():
    """Held open by the supervisor, so that connections wait while a forwarder starts and no tool can take the port."""
    return socket.create_server(("127.0.0.1", EGRESS_PORT), backlog=128)


def start_forwarder(listener: socket.socket, token: str):
    """@param token the name of the sandbox's socket @returns the process id"""
    pid = os.fork()
    if pid:
        return pid
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGCHLD, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        keep_only({listener.fileno()})
        os.setgroups([])
        os.setgid(FORWARDER_UID)
        os.setuid(FORWARDER_UID)
        forward_all(listener, token)
    finally:
        os._exit(1)


def forward_all(listener: socket.socket, token: str):
    """Runs until the process is ended."""
    import asyncio

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        upstream = None
        try:
            upstream = await asyncio.open_unix_connection(f"{EGRESS_FOLDER}/{token}.sock")
            await splice((reader, writer), upstream)
        except OSError:
            if upstream is None:
                text = b"The egress proxy is not running; the next command starts it again.\n"
                head = f"HTTP/1.1 502 Bad Gateway\r\nx-proxy-error: no-proxy\r\nContent-Length: {len(text)}\r\nConnection: close"
                writer.write(head.encode() + b"\r\n\r\n" + text)
        finally:
            writer.close()
            if upstream:
                upstream[1].close()

    async def serve():
        server = await asyncio.start_server(accept, sock=listener)
        await server.serve_forever()

    asyncio.run(serve())


def replace_ssh_in_git():
    """Makes git use https instead of ssh. Done only once, although a sandbox may be restarted."""
    hosts = "".join(f'[url "https://{host}/"]\n\tinsteadOf = git@{host}:\n' for host in GIT_HOSTS)
    text = f'# By longhaul: the network lets https through.\n[url "https://"]\n\tinsteadOf = ssh://git@\n{hosts}'
    try:
        with open(GIT_CONFIG, "a+", encoding="utf-8") as file:
            file.seek(0)
            if not re.search("^# By longhaul", file.read(), re.MULTILINE):
                file.write(text)
    except OSError:
        # Without /etc the image has no git that would read this file.
        pass
