"""The proxy's two sockets: one in a volume, for sandboxes; one in its own file system, for workers. Last part of the egress
proxy: see sources.ts.
"""

import asyncio
import json
import os

PUBLIC = "/run/longhaul/egress.sock"
CONTROL = "/var/lib/longhaul/control.sock"
# Equal to PROTOCOL in supervisor.py: requests and answers have the same form.
PROTOCOL = 1


class Control:
    """Answers workers' requests, one JSON text per line, in the same form as a sandbox's supervisor."""

    def __init__(self, proxy):
        self.proxy = proxy

    async def accept(self, reader, writer):
        try:
            while line := await reader.readline():
                request = json.loads(line)
                try:
                    said = {"ok": getattr(self, "do_" + request["op"])(request)}
                except Exception as error:
                    said = {"error": f"{type(error).__name__}: {error}"[:500]}
                writer.write(json.dumps({"q": request["q"], **said}).encode() + b"\n")
                await writer.drain()
        except (OSError, ValueError):
            pass
        finally:
            writer.close()

    def do_hello(self, request):
        return {"protocol": PROTOCOL, "empty": False, "boot": self.proxy.boot, "reachable": []}

    def do_ping(self, request):
        return {}

    do_unwait = do_ping

    def do_set(self, request):
        known = self.proxy.sessions.get(request["session"])
        if known:
            known.update(request)
        else:
            self.proxy.sessions[request["session"]] = Session(request)
        return {}

    def do_forget(self, request):
        self.proxy.sessions.pop(request["session"], None)
        return {}

    def do_denials(self, request):
        session = self.proxy.sessions.get(request["session"])
        return {"denials": session.report(request["everything"]) if session else []}


async def main():
    proxy = Proxy()
    # Open to all: a sandbox is identified by the token that it sends, and its volume with the socket is read-only.
    servers = [await asyncio.start_unix_server(proxy.accept, PUBLIC, limit=MAX_HEAD_BYTES)]
    os.chmod(PUBLIC, 0o666)
    # A session's rules may be long.
    servers.append(await asyncio.start_unix_server(Control(proxy).accept, CONTROL, limit=1 << 22))
    os.chmod(CONTROL, 0o600)
    await asyncio.gather(*(server.serve_forever() for server in servers))


asyncio.run(main())
