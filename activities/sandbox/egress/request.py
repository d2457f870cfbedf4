"""Heads and bodies of HTTP/1.1 as a proxy has to understand them.

Messages that two parsers could read differently are refused, since a request's end decides where the next one begins.
"""

from __future__ import annotations

import re
import urllib.parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio

MAX_HEAD_BYTES = 1 << 16
# Ends of lines that only some parsers take for one.
BARE = re.compile(r"[\0\r\n]")
TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
# Fields for one connection only: the proxy sets its own on each side. After an upgrade it could not parse the traffic.
HOP_BY_HOP = {"connection", "keep-alive", "proxy-connection", "proxy-authorization", "upgrade", "te"}


class Malformed(Exception):
    """The message cannot be understood, or not in one way only."""


def field(line: str):
    """@returns name and value @raises Malformed"""
    name, colon, value = line.partition(":")
    if not colon or not TOKEN.fullmatch(name) or BARE.search(value):
        raise Malformed
    return name, value.strip(" \t")


class Head:
    """The head of a request or an answer: its first line in three parts, and its fields in order."""

    def __init__(self, data: bytes):
        lines = data.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
        if BARE.search(lines[0]):
            raise Malformed
        self.first = lines[0].split(" ", 2)
        self.fields = [field(line) for line in lines[1:]]

    def values(self, name: str):
        """Of all fields of that name, in lower case."""
        return [value for field, value in self.fields if field.lower() == name]

    def kept(self, dropped: set[str]):
        """The fields as lines, without `dropped`, those of one connection, and those that it declares as such."""
        own = {name.strip().lower() for text in self.values("connection") for name in text.split(",")}
        return [f"{name}: {value}" for name, value in self.fields if name.lower() not in HOP_BY_HOP | dropped | own]

    def forwarded(self, first: str, host: str | None = None):
        """The head to forward, without fields for one connection only. In a request, `Host` is always `host`."""
        drop = HOP_BY_HOP | {"host"} if host else HOP_BY_HOP
        fields = [(name, value) for name, value in self.fields if name.lower() not in drop]
        lines = [first, *([f"Host: {host}"] if host else []), *(f"{name}: {value}" for name, value in fields)]
        return "\r\n".join([*lines, "Connection: close", "", ""]).encode("latin-1")


async def read_head(reader: asyncio.StreamReader, begun: bytes = b""):
    """@param begun what was read already @raises Malformed; EOFError; LimitOverrunError beyond the reader's limit"""
    return Head(begun + await reader.readuntil(b"\r\n\r\n"))


def authority(text: str, default_port: int):
    """@returns host and port @raises Malformed"""
    try:
        parts = urllib.parse.urlsplit(f"//{text}")
        if parts.path or parts.query or parts.fragment or "@" in text or not parts.hostname:
            raise Malformed
        return parts.hostname, parts.port or default_port
    except ValueError:
        raise Malformed from None


def body_length(head: Head):
    """The bytes of a request's body; None if it comes in chunks. Two lengths are refused also if they are equal: parsers differ.
    @raises Malformed"""
    lengths, codings = head.values("content-length"), head.values("transfer-encoding")
    if codings:
        if lengths or [coding.lower() for coding in codings] != ["chunked"]:
            raise Malformed
        return None
    if lengths and (len(lengths) != 1 or not re.fullmatch(r"[0-9]{1,18}", lengths[0])):
        raise Malformed
    return int(lengths[0]) if lengths else 0


async def copy_body(head: Head, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
    """Copies a request's body, and no byte after its end. @raises Malformed"""
    length = body_length(head)
    if length is None:
        while size := await copy_chunk(reader, writer):
            await copy_bytes(size, reader, writer)
            if await reader.readexactly(2) != b"\r\n":
                raise Malformed
            writer.write(b"\r\n")
        # Trailers are checked and dropped: nothing that we know needs them.
        while (line := await reader.readuntil(b"\r\n")) != b"\r\n":
            field(line[:-2].decode("latin-1"))
        writer.write(b"\r\n")
    elif length:
        await copy_bytes(length, reader, writer)
    await writer.drain()


async def copy_chunk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
    """Copies one chunk. @returns its size, 0 at the end"""
    size = await chunk_size(reader)
    writer.write(f"{size:x}\r\n".encode())
    return size


async def chunk_size(reader: asyncio.StreamReader, has_extensions: bool = False):
    """The size of the next chunk, 0 at the end. A request's chunks have no extensions: nothing uses them but attacks, since
    parsers differ in where they end. @raises Malformed"""
    line = (await reader.readuntil(b"\r\n"))[:-2]
    size = line.partition(b";")[0].strip(b" \t") if has_extensions else line
    if BARE.search(line.decode("latin-1")) or not re.fullmatch(rb"[0-9a-fA-F]{1,12}", size):
        raise Malformed
    return int(size, 16)


async def copy_bytes(count: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
    """@raises Malformed if the other side ends before"""
    while count:
        data = await reader.read(min(count, 1 << 16))
        if not data:
            raise Malformed
        count -= len(data)
        writer.write(data)
        await writer.drain()
