"""Replaces a key's value in what a server sends back: as it is and in base64, also over the borders of pieces."""

from __future__ import annotations

import base64
import html
import json
import re
import urllib.parse

# A part of the value in base64 that is shorter could be anything.
MIN_ENCODED_CHARS = 8


def encodings(value: str):
    """The value as it is, as JSON, HTML and addresses have it, and the part of it that base64 has whatever is around it."""
    forms = {value, json.dumps(value)[1:-1], html.escape(value), urllib.parse.quote(value, safe="")}
    for before in range(3):
        # Three bytes are four characters; those that also have bits of a neighbour differ.
        text = base64.b64encode(bytes(before) + value.encode()).decode()
        whole = text[-(-before * 8 // 6) : (before + len(value)) * 8 // 6]
        if len(whole) >= MIN_ENCODED_CHARS:
            forms |= {whole, whole.replace("+", "-").replace("/", "_")}
    return forms


class Mask:
    """What is replaced. @param values by the names of their keys"""

    def __init__(self, values: dict[str, str]):
        self.shown = {text.encode(): f"[key {name}]".encode() for name, value in values.items() for text in encodings(value)}
        longest_first = sorted(self.shown, key=len, reverse=True)
        self.pattern = re.compile(b"|".join(map(re.escape, longest_first)) or b"(?!)")

    def bytes(self, data: bytes):
        """The same for something that is there as a whole."""
        return self.pattern.sub(lambda match: self.shown[match.group()], data)

    def text(self, text: str):
        """A whole text, of characters that are one byte each."""
        return self.bytes(text.encode("latin-1")).decode("latin-1")

    def begun(self, data: bytes):
        """@returns how many of the last bytes may be the beginning of a value"""
        for count in range(min(len(data), max(map(len, self.shown), default=1) - 1), 0, -1):
            end = data[-count:]
            if any(text.startswith(end) for text in self.shown):
                return count
        return 0


class MaskedStream:
    """A text in pieces; holds back only what may be the beginning of a value."""

    def __init__(self, mask: Mask):
        self.mask = mask
        self.held = b""

    def push(self, data: bytes):
        """@returns what is known not to be a part of a value"""
        text, parts, at = self.held + data, list[bytes](), 0
        for match in self.mask.pattern.finditer(text):
            parts += [text[at : match.start()], self.mask.shown[match.group()]]
            at = match.end()
        rest = text[at:]
        sure = len(rest) - self.mask.begun(rest)
        self.held = rest[sure:]
        return b"".join([*parts, rest[:sure]])

    def end(self):
        """@returns what was held back"""
        rest, self.held = self.held, b""
        return rest
