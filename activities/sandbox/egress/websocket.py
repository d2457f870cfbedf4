"""Websockets to a host with keys: in what the server sends, a value is masked message by message. Source: RFC 6455, 5."""

from __future__ import annotations

import asyncio
import struct

from .mask import Mask, MaskedStream
from .request import Head, Malformed
from .splice import CHUNK_BYTES, IDLE_SECONDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .splice import Streams

FINAL = 0x80
# Bits that only extensions set, for which the proxy lets nobody ask: such a frame could be compressed.
EXTENSIONS = 0x70
CONTROL = 0x8
MAX_CONTROL_BYTES = 125


def is_websocket(head: Head):
    """Whether a request asks to go on as a websocket."""
    options = [option.strip().lower() for text in head.values("connection") for option in text.split(",")]
    protocols = [value.lower() for value in head.values("upgrade")]
    return head.first[0] == "GET" and head.first[2] == "HTTP/1.1" and protocols == ["websocket"] and "upgrade" in options


async def exchange_frames(mask: Mask, inner: Streams, upstream: Streams):
    """Copies in both directions until one side ends. @raises Malformed, OSError, EOFError, TimeoutError"""
    sides = {
        asyncio.ensure_future(to_server(inner[0], upstream[1])),
        asyncio.ensure_future(to_sandbox(mask, upstream[0], inner[1])),
    }
    try:
        done, _ = await asyncio.wait(sides, return_when=asyncio.FIRST_COMPLETED)
        for side in done:
            side.result()
    finally:
        for side in sides:
            side.cancel()


async def to_server(reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
    while data := await asyncio.wait_for(reader.read(CHUNK_BYTES), IDLE_SECONDS):
        writer.write(data)
        await writer.drain()


async def to_sandbox(mask: Mask, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
    message, kind = MaskedStream(mask), 0
    while True:
        first, length = await asyncio.wait_for(frame_head(reader), IDLE_SECONDS)
        if first & CONTROL:
            data = mask.bytes(await reader.readexactly(length))
            writer.write(frame(first, data[:MAX_CONTROL_BYTES]))
        else:
            # The first frame of a message says what kind it is; all others say 0.
            kind = first & 0xF or kind
            while True:
                data = await reader.read(min(length, CHUNK_BYTES)) if length else b""
                if length and not data:
                    raise Malformed
                length -= len(data)
                is_last = not length and first & FINAL
                text = message.push(data) + (message.end() if is_last else b"")
                if text or is_last:
                    writer.write(frame(kind | (FINAL if is_last else 0), text))
                    kind = 0
                await writer.drain()
                if not length:
                    break
        await writer.drain()


async def frame_head(reader: asyncio.StreamReader):
    """@returns the first byte and the length of what follows @raises Malformed, EOFError"""
    first, second = await reader.readexactly(2)
    length = second & 0x7F
    if length == 126:
        (length,) = struct.unpack(">H", await reader.readexactly(2))
    elif length == 127:
        (length,) = struct.unpack(">Q", await reader.readexactly(8))
    # A server's frames are not masked by a key of their own.
    if second & 0x80 or first & EXTENSIONS or (first & CONTROL and length > MAX_CONTROL_BYTES):
        raise Malformed
    return first, length


def frame(first: int, data: bytes):
    """A frame of a server."""
    if len(data) < 126:
        return bytes([first, len(data)]) + data
    if len(data) < 1 << 16:
        return bytes([first, 126]) + struct.pack(">H", len(data)) + data
    return bytes([first, 127]) + struct.pack(">Q", len(data)) + data
