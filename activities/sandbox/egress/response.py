"""Bodies of answers, without what only says where they end."""

from __future__ import annotations

import asyncio
import re

from .request import Head, Malformed, chunk_size, field
from .splice import CHUNK_BYTES, IDLE_SECONDS


def has_body(method: str, status: int):
    return method != "HEAD" and status not in (204, 304)


def is_unread(head: Head):
    """@returns how the body is compressed, so that nothing is found in it; None if it is not"""
    codings = [value.lower() for value in head.values("content-encoding") if value.lower() != "identity"]
    return ", ".join(codings)[:60] or None


async def body_of(head: Head, reader: asyncio.StreamReader):
    """The body in pieces. @raises Malformed, OSError, EOFError, TimeoutError"""
    lengths, codings = head.values("content-length"), head.values("transfer-encoding")
    if codings:
        if lengths or [coding.lower() for coding in codings] != ["chunked"]:
            raise Malformed
        while size := await asyncio.wait_for(chunk_size(reader, has_extensions=True), IDLE_SECONDS):
            async for data in exactly(size, reader):
                yield data
            if await reader.readexactly(2) != b"\r\n":
                raise Malformed
        while (line := await reader.readuntil(b"\r\n")) != b"\r\n":
            field(line[:-2].decode("latin-1"))
    elif lengths:
        if len(set(lengths)) != 1 or not re.fullmatch(r"[0-9]{1,18}", lengths[0]):
            raise Malformed
        async for data in exactly(int(lengths[0]), reader):
            yield data
    else:
        while data := await asyncio.wait_for(reader.read(CHUNK_BYTES), IDLE_SECONDS):
            yield data


async def exactly(count: int, reader: asyncio.StreamReader):
    """So many bytes in pieces. @raises Malformed if the other side ends before"""
    while count:
        data = await asyncio.wait_for(reader.read(min(count, CHUNK_BYTES)), IDLE_SECONDS)
        if not data:
            raise Malformed
        count -= len(data)
        yield data
