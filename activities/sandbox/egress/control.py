"""The proxy's sockets: in a volume one for each sandbox, in its own file system one for workers."""

from __future__ import annotations

import asyncio
import json
import os

from .proxy import Proxy, Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Equal to EGRESS_FOLDER in forwarder.py.
SOCKETS = "/run/longhaul"
# Sessions with a socket; workers tell of those that have a command several times a minute.
MAX_SESSIONS = 1024
CONTROL = "/var/lib/longhaul/control.sock"
# Equal to PROTOCOL in supervisor.py: requests and answers have the same form.
PROTOCOL = 1


class Control:
    """Answers workers' requests, one JSON text per line, in the same form as a sandbox's supervisor."""

    def __init__(self, proxy: Proxy):
        self.proxy = proxy

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        """Answers one worker, until it closes."""
        try:
            while line := await reader.readline():
                request = json.loads(line)
                try:
                    reply = {"ok": getattr(self, "do_" + request["op"])(request)}
                except Exception as error:
                    reply = {"error": f"{type(error).__name__}: {error}"[:500]}
                writer.write(json.dumps({"q": request["q"], **reply}).encode() + b"\n")
                await writer.drain()
        except (OSError, ValueError):
            pass
        finally:
            writer.close()

    def do_hello(self, request: dict[str, Any]) -> dict[str, Any]:
        return {"protocol": PROTOCOL, "empty": False, "boot": self.proxy.boot, "reachable": []}

    def do_ping(self, request: dict[str, Any]) -> dict[str, Any]:
        return {}

    do_unwait = do_ping

    def do_set(self, request: dict[str, Any]) -> dict[str, Any]:
        """Sets a session's rules, and opens its socket. Idempotent."""
        sessions, name = self.proxy.sessions, request["session"]
        session = sessions.pop(name, None) or Session(request)
        # Last, so that the first is the one that was not used for longest.
        sessions[name] = session
        session.update(request)
        session.open(self.proxy, f"{SOCKETS}/{session.token}.sock")
        if len(sessions) > MAX_SESSIONS:
            self.do_forget({"session": next(iter(sessions))})
        return {}

    def do_certificate(self, request: dict[str, Any]) -> dict[str, Any]:
        """What proves the key hosts to a session's sandbox, so that all workers use the same."""
        session = self.proxy.sessions.get(request["session"])
        return {"certificate": session.certificate if session else None}

    def do_keys(self, request: dict[str, Any]) -> dict[str, Any]:
        """Uses and refusals of keys since the last time."""
        session = self.proxy.sessions.get(request["session"])
        return {"uses": session.key_use.report() if session else []}

    def do_forget(self, request: dict[str, Any]) -> dict[str, Any]:
        """Closes a session's connections. Idempotent."""
        session = self.proxy.sessions.pop(request["session"], None)
        if session:
            session.close()
        return {}

    def do_denials(self, request: dict[str, Any]) -> dict[str, Any]:
        """Refusals since the last time: host, port, reason, count."""
        session = self.proxy.sessions.get(request["session"])
        return {"denials": session.report(request["everything"]) if session else []}


async def main():
    proxy = Proxy()
    # The proxy that was here before is gone, its sockets are not.
    for name in os.listdir(SOCKETS):
        os.unlink(f"{SOCKETS}/{name}")
    # A socket is found only by who knows the sandbox's token. Sandboxes have the folder read-only.
    os.chmod(SOCKETS, 0o711)
    # A session's rules may be long.
    control = await asyncio.start_unix_server(Control(proxy).accept, CONTROL, limit=1 << 22)
    os.chmod(CONTROL, 0o600)
    await control.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
