"""The egress proxy of `sandbox.network: listed`: one on each Docker host, in a container of the operator's image. Sandboxes
reach it over sockets in a volume, each over its own.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import socket
import ssl
import time

from .client_hello import asks_again, hello_and_end
from .decision import Refused, Rules, literal
from .key_host import EXPIRED, KeyHost, Server
from .key_use import KeyUse
from .request import MAX_HEAD_BYTES, Malformed, authority, body_length, copy_body, read_head
from .splice import CHUNK_BYTES, IDLE_SECONDS, splice
from .tunnel import again, literal_or_normal, opening, until_known

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .request import Head
    from .splice import Streams

# Limits per session and in total: each connection takes some 100 KB at most. However many others have, a session has some.
MAX_CONNECTIONS = 128
MAX_ALL_CONNECTIONS = 1024
OWN_CONNECTIONS = 8
# Connections that wait for the proxy to take them, in each socket's own queue.
BACKLOG = 1024
# Look-ups of names at a time, in all (each is a thread, of the container's 64) and per session.
MAX_LOOKUPS = 48
OWN_LOOKUPS = 4
ACCEPT_PAUSE_SECONDS = 0.05
HEAD_SECONDS = 60
CONNECT_SECONDS = 15
# Refusals are reported once in this time for each host and reason, with their count.
REPORT_SECONDS = 60
MAX_REPORTED = 50
# TLS: a fatal alert, access denied.
ALERT = bytes([21, 3, 3, 0, 2, 2, 49])


class Session:
    """One sandbox: its rules, its socket, its keys, and what it was refused."""

    # What proves the key hosts to the sandbox, as the worker sent it last.
    certificate: dict[str, Any] | None = None

    def __init__(self, settings: dict[str, Any]):
        self.key_hosts = dict[tuple[str, int], KeyHost]()
        self.key_use = KeyUse()
        # By host, port and reason: how many, and when they were reported last (monotonic, in seconds).
        self.denials: dict[tuple[str, int, str], tuple[int, float | None]] = {}
        self.connections = 0
        self.lookups = asyncio.Semaphore(OWN_LOOKUPS)
        self.path: str | None = None
        self.update(settings)

    def update(self, settings: dict[str, Any]):
        """@raises ValueError for rules that cannot be read"""
        sent = settings.get("certificate")
        # Another worker may have made a newer one.
        if sent is None or self.certificate is None or sent["made"] >= self.certificate["made"]:
            self.certificate = sent
        # Before the rules: a host must not be let through before its keys are known.
        self.key_hosts = {(host["host"], host["port"]): self.key_host(host) for host in settings.get("keys", [])}
        self.id = settings["id"]
        self.token = settings["token"]
        self.rules = Rules(settings)

    def key_host(self, settings: dict[str, Any]):
        """The same as before if nothing changed, since its certificates are read only once."""
        certificate = self.certificate or {"hosts": {}, "until": 0}
        whole = {**settings, "certificate": certificate["hosts"][settings["host"]], "until": certificate["until"]}
        known = self.key_hosts.get((settings["host"], settings["port"]))
        return known if known and known.settings == whole else KeyHost(whole)

    def open(self, proxy: Proxy, path: str):
        """Listens at this path, if not yet; no longer at another one."""
        if self.path == path:
            return
        self.close()
        self.path, self.listener = path, listening(path)
        self.serving = asyncio.create_task(proxy.serve(self.listener, self))

    def close(self):
        """Ends its connections and removes its socket."""
        if self.path:
            self.serving.cancel()
            self.listener.close()
            os.unlink(self.path)
            self.path = None

    def deny(self, host: str, port: int, reason: str):
        key = (host, port, reason)
        if key not in self.denials and len(self.denials) >= MAX_REPORTED:
            key = ("further hosts", 0, reason)
        count, reported = self.denials.get(key, (0, None))
        self.denials[key] = (count + 1, reported)

    def report(self, everything: bool) -> list[dict[str, Any]]:
        """Refusals that are due, each counted once."""
        now = time.monotonic()
        due: list[dict[str, Any]] = []
        for key, (count, reported) in list(self.denials.items()):
            waited = reported is None or now - reported >= REPORT_SECONDS
            if count and (waited or everything):
                host, port, why = key
                due.append({"host": host, "port": port, "reason": why, "count": count})
                self.denials[key] = (0, now)
            elif waited and not count:
                del self.denials[key]
        return due


def listening(path: str):
    """A socket at this path to which every user may connect."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    os.chmod(path, 0o666)
    listener.listen(BACKLOG)
    listener.setblocking(False)
    return listener


class Proxy:
    """All sessions of a Docker host, by id."""

    def __init__(self):
        self.boot = os.urandom(8).hex()
        self.sessions: dict[str, Session] = {}
        self.connections = 0
        self.handling: set[asyncio.Task[None]] = set()
        self.resolver = concurrent.futures.ThreadPoolExecutor(MAX_LOOKUPS)

    async def serve(self, listener: socket.socket, session: Session):
        """Takes the connections to a session's socket, one at a time: between two of them every other socket has its turn, so a
        crowd waits in the queue of its own."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(listener)
                sandbox = await asyncio.open_unix_connection(sock=connection, limit=MAX_HEAD_BYTES)
            except OSError:
                # No descriptor is free, or the other side is gone.
                await asyncio.sleep(ACCEPT_PAUSE_SECONDS)
                continue
            handled = asyncio.create_task(self.accept(*sandbox, session))
            self.handling.add(handled)
            handled.add_done_callback(self.handling.discard)

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, session: Session):
        """Handles one connection of a sandbox. @param session whose socket it came to"""
        self.connections += 1
        session.connections += 1
        try:
            async with asyncio.timeout(HEAD_SECONDS):
                is_many = self.connections > MAX_ALL_CONNECTIONS and session.connections > OWN_CONNECTIONS
                if session.connections > MAX_CONNECTIONS or is_many:
                    return await answer(writer, 503, "too-many-connections", "Too many connections are open; try again.")
                head = await read_head(reader)
            body_length(head)
            await self.exchange(session, head, reader, writer)
        except (Malformed, asyncio.LimitOverrunError, UnicodeDecodeError, ValueError):
            await answer(writer, 400, "malformed-request", "The proxy does not understand this request.")
        except (OSError, EOFError, TimeoutError):
            # One side disconnected, or was silent for too long.
            pass
        finally:
            self.connections -= 1
            session.connections -= 1
            writer.close()

    async def exchange(self, session: Session, head: Head, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        """Handles one request. @raises Malformed, ValueError"""
        method, target, _ = (*head.first, "", "")[:3]
        is_tunnel = method == "CONNECT"
        scheme, _, rest = target.partition("://")
        origin = ""
        if is_tunnel:
            host, port = authority(target, 443)
        elif scheme.lower() == "http":
            netloc, slash, path = rest.partition("/")
            host, port = authority(netloc, 80)
            origin = f"{slash or '/'}{path}"
        else:
            raise Malformed
        name = host
        try:
            name = session.rules.check_name(host)
            key_host = session.key_hosts.get((name, port)) if is_tunnel else None
            upstream = await self.connect(session, name, port, key_host)
        except Refused as refused:
            shown_name = "(invalid name)" if refused.reason == "invalid-name" else literal_or_normal(name)
            session.deny(shown_name, port, refused.reason)
            if refused.reason == EXPIRED:
                key_refused(session, name, port)
            return await answer(writer, 403, refused.reason, help_text(session, shown_name, port, refused))
        except ssl.SSLError as error:
            key_refused(session, name, port)
            return await answer(writer, 502, "certificate", f"{name}:{port} does not prove that it is {name}: {error}")
        except (OSError, TimeoutError) as error:
            return await answer(writer, 502, "unreachable", f"{name}:{port} cannot be reached: {error}")
        try:
            if key_host:
                server = Server(upstream, lambda: self.connect(session, name, port, key_host))
                await self.tunnel_to_keys(session, key_host, (reader, writer), server)
            elif is_tunnel:
                await self.tunnel(session, name, port, (reader, writer), upstream)
            else:
                await forward(head, origin, name, port, (reader, writer), upstream)
        except (Malformed, Refused, asyncio.LimitOverrunError, ValueError):
            # The answer may have begun, so an error cannot be sent: only close the connection.
            pass
        finally:
            upstream[1].close()

    async def connect(self, session: Session, name: str, port: int, key_host: KeyHost | None = None):
        """Looks the name up once and connects to the checked addresses: a second look-up could give others. A host with keys must
        prove its name. @raises Refused, OSError, TimeoutError"""
        if key_host:
            key_host.check_age()
        async with asyncio.timeout(CONNECT_SECONDS):
            infos = await self.look_up(session, name, port)
        addresses = list(dict.fromkeys(str(info[4][0]) for info in infos))
        session.rules.check_addresses(name, port, addresses)
        trouble = None
        for address in addresses:
            try:
                async with asyncio.timeout(CONNECT_SECONDS):
                    if key_host:
                        tls = key_host.outer
                        return await asyncio.open_connection(address, port, limit=MAX_HEAD_BYTES, ssl=tls, server_hostname=name)
                    return await asyncio.open_connection(address, port, limit=MAX_HEAD_BYTES)
            except (OSError, TimeoutError) as error:
                trouble = error
        raise trouble or OSError("no address")

    async def look_up(self, session: Session, name: str, port: int):
        """Names that nobody answers keep their threads until the resolver gives up: a session has some of these at most."""
        await session.lookups.acquire()
        free = asyncio.get_running_loop().call_soon_threadsafe
        looking = self.resolver.submit(socket.getaddrinfo, name, port, type=socket.SOCK_STREAM)
        looking.add_done_callback(lambda _: free(session.lookups.release))
        return await asyncio.wrap_future(looking)

    async def tunnel_to_keys(self, session: Session, host: KeyHost, sandbox: Streams, server: Server):
        """Ends the TLS of a tunnel to a host with keys; nothing else passes. @raises OSError, EOFError, TimeoutError, Refused"""
        sandbox[1].write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        try:
            async with asyncio.timeout(HEAD_SECONDS):
                head, data = await opening(sandbox[0], host.name)
            if head:
                raise Refused("not-tls", "a host with keys is asked over TLS only")
        except Refused as refused:
            session.deny(host.name, host.port, refused.reason)
            sandbox[1].write(ALERT)
            return
        await host.serve(sandbox, data, server, session.key_use)

    async def tunnel(self, session: Session, name: str, port: int, sandbox: Streams, upstream: Streams):
        """Joins both sides once the first bytes name the server that was asked for. @raises Malformed, ValueError, OSError,
        EOFError, TimeoutError"""
        reader, writer = sandbox
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        try:
            async with asyncio.timeout(HEAD_SECONDS):
                head, data = await opening(reader, name)
        except Refused as refused:
            session.deny(name, port, refused.reason)
            writer.write(ALERT)
            return
        if head:
            await forward(head, head.first[1], name, port, sandbox, upstream)
            return
        # What follows the hello waits: it could be a second one, for another server.
        _, end = hello_and_end(data) or (b"", len(data))
        upstream[1].write(data[:end])
        try:
            async with asyncio.timeout(HEAD_SECONDS):
                answered = await until_known(upstream[0], asks_again)
                writer.write(answered)
                is_again = asks_again(answered)
                upstream[1].write(await again(reader, name, data[end:]) if is_again else data[end:])
        except Refused as refused:
            session.deny(name, port, refused.reason)
            writer.write(ALERT)
            return
        await splice(sandbox, upstream)


async def forward(head: Head, path: str, name: str, port: int, sandbox: Streams, upstream: Streams):
    """Forwards one request and its answer. Both connections end after it, so that nothing sent after it reaches the server."""
    if not path.startswith("/") and path != "*":
        raise Malformed
    host = f"[{name}]" if ":" in name else name
    first = f"{head.first[0]} {path} HTTP/1.1"
    upstream[1].write(head.forwarded(first, host if port == 80 else f"{host}:{port}"))

    async def answer_back():
        while True:
            answered = await read_head(upstream[0])
            if len(answered.first) < 2:
                raise Malformed
            sandbox[1].write(answered.forwarded(" ".join(answered.first)))
            # 100 Continue and the like come before the answer.
            if not answered.first[1].startswith("1"):
                break
        while data := await asyncio.wait_for(upstream[0].read(CHUNK_BYTES), IDLE_SECONDS):
            sandbox[1].write(data)
            await sandbox[1].drain()

    body = asyncio.ensure_future(copy_body(head, sandbox[0], upstream[1]))
    back = asyncio.ensure_future(answer_back())
    try:
        done, _ = await asyncio.wait({body, back}, return_when=asyncio.FIRST_COMPLETED)
        if body in done:
            body.result()
        # A server may answer before it has read the whole request.
        await back
    finally:
        body.cancel()
        back.cancel()


def key_refused(session: Session, name: str, port: int):
    """Counts that no key of the host could be used, since its certificate proves nothing."""
    host = session.key_hosts.get((name, port))
    for key in host.keys if host else []:
        session.key_use.refuse(key.name, name, "", "", "certificate")


def help_text(session: Session, host: str, port: int, refused: Refused):
    """The text of a refusal, with what a person can do about it."""
    by_list = f"A person can allow it: longhaul allow {session.id} {host}"
    by_address = "The person's configuration can allow the address: sandbox.allow"
    address = literal(host)
    if address and not session.rules.is_open(address, port):
        by_list = by_address
    fix = {"blocked-by-allowlist": by_list, "blocked-private-address": by_address}.get(refused.reason, "")
    return f"Refused by the sandbox's network: {refused}. {fix}".strip()


async def answer(writer: asyncio.StreamWriter, status: int, reason: str, text: str):
    """Answers with an error of the proxy's own, named in a field for programs."""
    phrases = {400: "Bad Request", 403: "Forbidden", 502: "Bad Gateway", 503: "Service Unavailable"}
    body = f"{text}\n".encode()
    fields = f"x-proxy-error: {reason}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\nConnection: close"
    writer.write(f"HTTP/1.1 {status} {phrases[status]}\r\n{fields}\r\n\r\n".encode() + body)
    try:
        await writer.drain()
    except OSError:
        pass
