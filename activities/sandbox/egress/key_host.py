"""A host to which an operator bound keys: TLS ends here on both sides, so that the key is added outside of the sandbox."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import ssl
import time

from .decision import Refused
from .key_rules import Key, normal_path
from .mask import Mask, MaskedStream
from .request import MAX_HEAD_BYTES, Head, Malformed, body_length, copy_body, read_head
from .response import body_of, has_body, is_unread
from .splice import CHUNK_BYTES, IDLE_SECONDS
from .websocket import exchange_frames, is_websocket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    from .key_use import KeyUse
    from .splice import Streams

HANDSHAKE_SECONDS = 30
HEAD_SECONDS = 60
# For the last bytes of a connection that ends.
CLOSE_SECONDS = 5
# An answer in parts would have a value in parts; an answer that is compressed cannot be read.
NOT_FORWARDED = {"accept-encoding", "range", "if-range", "sec-websocket-extensions"}
# What a server sends for later connections: there it would be asked without the proxy.
NOT_RETURNED = {"content-length", "transfer-encoding", "trailer", "alt-svc"}
EXPIRED = "key-certificate-expired"
# Frameworks and servers take a request's host, path or method from these, where they are set, and not from its first line.
OVERRIDES = {
    *("forwarded", "x-forwarded-host", "x-forwarded-server", "x-original-host", "x-host", "x-http-host-override"),
    *("x-original-url", "x-rewrite-url", "x-original-uri", "x-forwarded-uri", "x-forwarded-path", "x-forwarded-prefix"),
    *("x-http-method-override", "x-http-method", "x-method-override", "x-forwarded-method", "x-original-method"),
}
PHRASES = {400: "Bad Request", 421: "Misdirected Request", 502: "Bad Gateway"}


class Server:
    """The connection to the server, which may end it between two requests. @param connect makes it: checked as at first"""

    def __init__(self, opened: Streams, connect: Callable[[], Awaitable[Streams]]):
        self.opened = opened
        self.connect = connect

    async def streams(self):
        """@raises OSError, TimeoutError, Refused"""
        if self.opened[0].at_eof():
            self.close()
            self.opened = await self.connect()
        return self.opened

    def close(self):
        self.opened[1].close()


class KeyHost:
    """One host and port of a session, with its keys. @raises ValueError, OSError for settings that cannot be used"""

    def __init__(self, settings: dict[str, Any]):
        self.settings = settings
        self.name: str = settings["host"]
        self.port: int = settings["port"]
        self.until: float = settings["until"]
        self.keys = [Key(key) for key in settings["keys"]]
        self.mask = Mask({key.name: key.value for key in self.keys})
        self.inner = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        load_chain(self.inner, settings["certificate"])
        self.inner.set_alpn_protocols(["http/1.1"])
        self.outer = ssl.create_default_context()
        # Authorities of companies often lack what it asks for.
        self.outer.verify_flags &= ~ssl.VERIFY_X509_STRICT
        self.outer.set_alpn_protocols(["http/1.1"])
        if settings["authorities"]:
            self.outer.load_verify_locations(cadata=settings["authorities"])

    def check_age(self):
        """@raises Refused if its certificate must not be used any more"""
        if time.time() >= self.until:
            text = f"the certificate that {self.name} has in this sandbox is too old: it is made again when the sandbox is opened"
            raise Refused(EXPIRED, text)

    async def serve(self, sandbox: Streams, hello: bytes, server: Server, use: KeyUse):
        """Ends the sandbox's TLS and answers its requests, one after the other."""
        near, far = socket.socketpair()
        raw = await asyncio.open_connection(sock=near)
        raw[1].write(hello)
        pumps = [asyncio.ensure_future(pour(sandbox[0], raw[1])), asyncio.ensure_future(pour(raw[0], sandbox[1]))]
        try:
            try:
                inner = await self.accept(far)
            except ConnectionError as error:
                # Some clients that do not trust the certificate hang up without a word.
                raise ssl.SSLError(str(error)) from None
            try:
                while await self.exchange(inner, server, use):
                    pass
            finally:
                inner[1].close()
                await asyncio.wait(pumps[1:], timeout=CLOSE_SECONDS)
        except ssl.SSLError as error:
            # The client does not trust the certificate, or has one of its own for this host.
            use.refuse(self.keys[0].name, self.name, "", "", "certificate")
            raise ConnectionResetError(str(error)) from None
        finally:
            for pump in pumps:
                pump.cancel()
            raw[1].close()
            server.close()

    async def accept(self, far: socket.socket):
        """@returns the sandbox's side without TLS @raises OSError"""
        far.setblocking(False)
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=MAX_HEAD_BYTES, loop=loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        transport, _ = await loop.connect_accepted_socket(
            lambda: protocol,
            far,
            ssl=self.inner,
            ssl_handshake_timeout=HANDSHAKE_SECONDS,
            ssl_shutdown_timeout=CLOSE_SECONDS,
        )
        return reader, asyncio.StreamWriter(transport, protocol, reader, loop)

    async def exchange(self, inner: Streams, server: Server, use: KeyUse):
        """Forwards a request and its answer. @returns whether another request may follow"""
        reader, writer = inner
        try:
            async with asyncio.timeout(HEAD_SECONDS):
                try:
                    head = await read_head(reader)
                except asyncio.IncompleteReadError:
                    return False
            if head.first == ["PRI", "*", "HTTP/2.0"]:
                use.refuse(self.keys[0].name, self.name, "", "", "http2")
                return False
            method, path, query = self.checked(head)
        except (Malformed, asyncio.LimitOverrunError, ValueError):
            await say(
                writer,
                400,
                "malformed-request",
                "The proxy does not understand this request, or a server could read it otherwise.",
            )
            return False
        except Refused as refused:
            use.refuse(self.keys[0].name, self.name, "", "", "host")
            await say(writer, 421, refused.reason, str(refused))
            return False
        key = self.key_for(method, path, query, use)
        upstream = await server.streams()
        upstream[1].write(self.request(head, key))
        body = asyncio.ensure_future(copy_body(head, reader, upstream[1]))
        answer = asyncio.ensure_future(self.answer(head, inner, upstream))
        try:
            done, _ = await asyncio.wait({body, answer}, return_when=asyncio.FIRST_COMPLETED)
            if body in done:
                body.result()
            # A server may answer before it has read the whole request.
            status, unread, goes_on = await answer
        except (Malformed, ValueError):
            return False
        finally:
            body.cancel()
            answer.cancel()
        if key:
            use.used(key.name, self.name, method, path, status, unread)
        return goes_on and body.done() and not body.cancelled()

    def checked(self, head: Head):
        """@returns method, path and query @raises Malformed; Refused for another host than the connection's"""
        if len(head.first) != 3 or not re.fullmatch(r"HTTP/1\.[01]", head.first[2]) or not re.fullmatch(r"[A-Z]+", head.first[0]):
            raise Malformed
        body_length(head)
        # Servers that pass fields on as variables read `_` like `-`.
        if any(name.lower().replace("_", "-") in OVERRIDES for name, _ in head.fields):
            raise Malformed
        hosts = head.values("host")
        if len(hosts) != 1:
            raise Malformed
        # A server may have several sites behind one connection.
        if hosts[0].lower().removesuffix(f":{self.port}").removesuffix(".") != self.name:
            raise Refused("host-mismatch", f"this connection is for {self.name}, and the request names another host")
        return head.first[0], *normal_path(head.first[1])

    def key_for(self, method: str, path: str, query: str, use: KeyUse):
        """The key that this request gets; without one it goes on as it is."""
        reasons = [(key, key.refusal(method, path, query)) for key in self.keys]
        key_to_use = next((key for key, reason in reasons if reason is None), None)
        if key_to_use is None:
            key, reason = next(((key, reason) for key, reason in reasons if reason == "method"), reasons[0])
            use.refuse(key.name, self.name, method, path, reason or "path")
        return key_to_use

    def request(self, head: Head, key: Key | None):
        """The head to forward."""
        replaced = {key.header.lower()} if key else set[str]()
        upgrade = ["Connection: Upgrade", "Upgrade: websocket"] if is_websocket(head) else []
        fields = head.kept(NOT_FORWARDED | replaced | {"host"})
        authority = self.name if self.port == 443 else f"{self.name}:{self.port}"
        lines = [f"{head.first[0]} {head.first[1]} HTTP/1.1", f"Host: {authority}", "Accept-Encoding: identity"]
        if key:
            lines.append(f"{key.header}: {key.text}")
        return "\r\n".join([*lines, *fields, *upgrade, "", ""]).encode("latin-1")

    async def answer(self, request: Head, inner: Streams, upstream: Streams):
        """Forwards the answer, in which the value is masked. @returns status, how the body is compressed if it is, and whether
        another request may follow @raises Malformed, OSError, EOFError, TimeoutError"""
        writer = inner[1]
        while True:
            head = await asyncio.wait_for(read_head(upstream[0]), IDLE_SECONDS)
            if len(head.first) < 2 or not re.fullmatch(r"[1-5][0-9][0-9]", head.first[1]):
                raise Malformed
            if head.first[1] == "101":
                return await self.goes_on_as_websocket(request, head, inner, upstream)
            if head.first[1] != "100":
                if head.first[1].startswith("1"):
                    continue
                break
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        status = int(head.first[1])
        is_old = request.first[2] == "HTTP/1.0"
        wants_end = "close" in [value.strip().lower() for text in request.values("connection") for value in text.split(",")]
        goes_on = not (is_old or wants_end)
        with_body = has_body(request.first[0], status)
        fields = head.kept(NOT_RETURNED if with_body else NOT_RETURNED - {"content-length"})
        if with_body and not is_old:
            fields.append("Transfer-Encoding: chunked")
        if not goes_on:
            fields.append("Connection: close")
        first = f"HTTP/1.1 {' '.join(head.first[1:])}"
        writer.write(self.mask.text("\r\n".join([first, *fields, "", ""])).encode("latin-1"))
        unread = is_unread(head) if with_body else None
        if with_body:
            masked = MaskedStream(self.mask)
            async for data in body_of(head, upstream[0]):
                await send(writer, data if unread else masked.push(data), is_old)
            await send(writer, masked.end(), is_old)
            if not is_old:
                writer.write(b"0\r\n\r\n")
        await writer.drain()
        return status, unread, goes_on

    async def goes_on_as_websocket(self, request: Head, head: Head, inner: Streams, upstream: Streams):
        """Until one side ends; an event counts it as any other answer."""
        if not is_websocket(request):
            raise Malformed
        fields = [*head.kept(NOT_RETURNED | {"sec-websocket-extensions"}), "Connection: Upgrade", "Upgrade: websocket"]
        first = f"HTTP/1.1 {' '.join(head.first[1:])}"
        inner[1].write(self.mask.text("\r\n".join([first, *fields, "", ""])).encode("latin-1"))
        try:
            await exchange_frames(self.mask, inner, upstream)
        except (OSError, EOFError, TimeoutError):
            # One side has ended.
            pass
        return 101, None, False


async def send(writer: asyncio.StreamWriter, data: bytes, plainly: bool):
    """Sends a piece of a body, as a chunk or plainly."""
    if data:
        writer.write(data if plainly else f"{len(data):x}\r\n".encode() + data + b"\r\n")
        await writer.drain()


async def say(writer: asyncio.StreamWriter, status: int, reason: str, text: str):
    """Answers with an error of the proxy's own, after which the connection ends."""
    fields = f"x-proxy-error: {reason}\r\nContent-Type: text/plain\r\nContent-Length: {len(text) + 1}\r\nConnection: close"
    writer.write(f"HTTP/1.1 {status} {PHRASES[status]}\r\n{fields}\r\n\r\n{text}\n".encode())
    await writer.drain()


async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
    """Copies in one direction until its end."""
    try:
        while data := await asyncio.wait_for(reader.read(CHUNK_BYTES), IDLE_SECONDS):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
    except (OSError, TimeoutError):
        writer.close()


def load_chain(context: ssl.SSLContext, pem: str):
    """A certificate and its key, from memory: `ssl` takes only files. @raises OSError"""
    file = os.memfd_create("certificate")
    try:
        os.write(file, pem.encode())
        context.load_cert_chain(f"/proc/self/fd/{file}")
    finally:
        os.close(file)
