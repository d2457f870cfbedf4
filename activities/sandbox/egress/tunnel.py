"""How a tunnel begins: what its first bytes are, and that they name the server for which it was opened."""

from __future__ import annotations

import re

from .client_hello import HANDSHAKE, hello_of, second_hello_of, server_name
from .decision import Refused, literal, normal_name
from .request import MAX_HEAD_BYTES, read_head

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable


async def until_known(reader: asyncio.StreamReader, verdict: Callable[[bytes], object | None], data: bytes = b""):
    """Reads until the verdict on what was read is not None, or the other side ends. @returns what was read, behind `data`"""
    while verdict(data) is None and (piece := await reader.read(MAX_HEAD_BYTES)):
        data += piece
    return data


async def again(reader: asyncio.StreamReader, name: str, begun: bytes):
    """Reads the second client hello, for which a server may ask. @returns what was read @raises Refused"""
    try:
        data = await until_known(reader, second_hello_of, begun)
        hello = second_hello_of(data)
        if hello is None:
            raise EOFError
        check_hello(hello, name)
    except ValueError as error:
        raise Refused("malformed-client-hello", str(error)) from None
    return data


async def opening(reader: asyncio.StreamReader, name: str):
    """Reads how a tunnel begins: with TLS for that name, or with plain HTTP, for which some clients also open tunnels.
    @returns the request's head and no bytes, or no head and the bytes of the client hello @raises Refused"""
    data = await reader.readexactly(1)
    if data[0] != HANDSHAKE:
        data += await reader.readuntil(b"\r\n")
        if not re.fullmatch(rb"[A-Z]+ \S+ HTTP/1\.[01]\r\n", data):
            raise Refused("not-tls", "neither TLS nor HTTP is spoken")
        return await read_head(reader, data), b""
    try:
        while (hello := hello_of(data)) is None:
            piece = await reader.read(MAX_HEAD_BYTES)
            if not piece:
                raise EOFError
            data += piece
        check_hello(hello, name)
    except ValueError as error:
        raise Refused("malformed-client-hello", str(error)) from None
    return None, data


def check_hello(hello: bytes, name: str):
    """@raises Refused if the hello names another server than the tunnel was opened for"""
    hello_name, encrypted = server_name(hello)
    if encrypted:
        raise Refused("encrypted-client-hello", "the server's name is hidden")
    # Clients send no server name when they connect to an address.
    if hello_name is None and literal(name) is None:
        raise Refused("no-server-name", "no server is named")
    if hello_name is not None and literal_or_normal(hello_name) != name:
        raise Refused("server-name-mismatch", "another server is named")


def literal_or_normal(text: str):
    """@returns the name as it is looked up; `(invalid name)` if it is none"""
    try:
        return str(literal(text) or normal_name(text))
    except Refused:
        return "(invalid name)"
