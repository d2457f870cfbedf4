"""The server's name in a TLS client hello. Source: RFC 8446, 4.1.2; RFC 6066, 3."""

from __future__ import annotations

HANDSHAKE = 22
CLIENT_HELLO = 1
SERVER_NAME = 0
HOST_NAME = 0
# Source: RFC 9849: encrypted client hello.
ENCRYPTED_CLIENT_HELLO = 0xFE0D
MAX_HELLO_BYTES = 1 << 16
SERVER_HELLO = 2
CHANGE_CIPHER_SPEC = 20
APPLICATION_DATA = 23
# The random of a server hello that asks for a second client hello. Source: RFC 8446, 4.1.3.
HELLO_RETRY = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")


class Fields:
    """Reads fields one after the other. @raises ValueError beyond the end"""

    def __init__(self, data: bytes):
        self.data = data
        self.at = 0

    def take(self, count: int):
        """@raises ValueError beyond the end"""
        if self.at + count > len(self.data):
            raise ValueError("it ends too soon")
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, count: int):
        """A number of so many bytes. @raises ValueError"""
        return int.from_bytes(self.take(count), "big")

    def vector(self, count: int):
        """Reads a field that is preceded by its length, which takes `count` bytes."""
        return self.take(self.number(count))

    def more(self):
        return self.at < len(self.data)


def hello_of(records: bytes):
    """@returns the hello's body; None while the records do not have all of it @raises ValueError if it is not a hello"""
    hello = hello_and_end(records)
    return hello and hello[0]


def hello_and_end(records: bytes):
    """The same, with the number of bytes of its records. @raises ValueError also if its last record has more than the hello"""
    fields, body = Fields(records), bytearray()
    while True:
        if (fields.more() and fields.data[fields.at] != HANDSHAKE) or len(records) > MAX_HELLO_BYTES:
            raise ValueError("this is no TLS client hello")
        try:
            fields.take(3)
            body += fields.vector(2)
        except ValueError:
            return None
        if body and body[0] != CLIENT_HELLO:
            raise ValueError("this is no TLS client hello")
        if len(body) >= 4 and len(body) >= 4 + int.from_bytes(body[1:4], "big"):
            if len(body) > 4 + int.from_bytes(body[1:4], "big"):
                raise ValueError("something follows the client hello in its record")
            return bytes(body[4:]), fields.at


def asks_again(records: bytes):
    """@returns whether the server's first message asks for a second client hello; None while it is not there yet"""
    fields, body = Fields(records), bytearray()
    while len(body) < 38:
        if not fields.more() or len(records) > MAX_HELLO_BYTES:
            return None if len(records) <= MAX_HELLO_BYTES else False
        if fields.data[fields.at] != HANDSHAKE:
            return False
        try:
            fields.take(3)
            body += fields.vector(2)
        except ValueError:
            return None
    return body[0] == SERVER_HELLO and bytes(body[6:38]) == HELLO_RETRY


def second_hello_of(records: bytes):
    """The same as `hello_of`, behind what a client may send before it: a change of the cipher, and early data that was refused."""
    at = 0
    while at + 5 <= len(records) and records[at] in (CHANGE_CIPHER_SPEC, APPLICATION_DATA):
        at += 5 + int.from_bytes(records[at + 3 : at + 5], "big")
    if at >= len(records):
        if len(records) > MAX_HELLO_BYTES:
            raise ValueError("this is no TLS client hello")
        return None
    return hello_of(records[at:])


def server_name(hello: bytes):
    """@returns the name, or None if there is none; and whether a part of the hello is encrypted @raises ValueError"""
    fields = Fields(hello)
    fields.take(2 + 32)
    for length_bytes in (1, 2, 1):
        fields.vector(length_bytes)
    extensions = Fields(fields.vector(2) if fields.more() else b"")
    names: list[str] = []
    encrypted = False
    while extensions.more():
        kind, value = extensions.number(2), Fields(extensions.vector(2))
        encrypted |= kind == ENCRYPTED_CLIENT_HELLO
        if kind == SERVER_NAME:
            entries = Fields(value.vector(2))
            while entries.more():
                is_host = entries.number(1) == HOST_NAME
                name = entries.vector(2)
                if is_host:
                    names.append(name.decode("ascii"))
    if len(names) > 1:
        raise ValueError("it has several server names")
    return (names[0] if names else None), encrypted
