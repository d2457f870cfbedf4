"""Which requests get a key. Opens no connections."""

from __future__ import annotations

import re
import urllib.parse

from .request import Malformed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Some servers decode a path more than once.
MAX_DECODED = 4
# npm writes the slash of a package's name as %2f.
NPM_NAME = re.compile(r"(?<=/)(@[A-Za-z0-9._~-]+)%2f(?=[A-Za-z0-9._~-])", re.IGNORECASE)
# An encoded dot, slash or backslash, or a character that ends a text for some.
AMBIGUOUS = re.compile(r"%(2e|2f|5c|7f|[01][0-9a-f])", re.IGNORECASE)
VISIBLE = re.compile(r"[!-~]+")


class Key:
    """A key and what it is for. `uses` of the settings: methods, a pattern of paths, and the whole query if it matters."""

    def __init__(self, settings: dict[str, Any]):
        self.name: str = settings["name"]
        self.value: str = settings["value"]
        self.header: str = settings["header"]
        self.text: str = settings["text"]
        self.uses = [(set(use["methods"]), path_pattern(use["path"]), use.get("query")) for use in settings["uses"]]

    def refusal(self, method: str, path: str, query: str):
        """@returns why a request does not get it; None if it does"""
        allowed_methods = [
            methods for methods, pattern, full_query in self.uses if pattern.fullmatch(path) and full_query in (None, query)
        ]
        if any(method in methods for methods in allowed_methods):
            return None
        return "method" if allowed_methods else "path"


def path_pattern(text: str):
    """`*`: any part of one name; `**`: anything."""
    parts = re.split(r"(\*\*|\*)", text)
    return re.compile("".join({"*": "[^/]*", "**": ".*"}.get(part, re.escape(part)) for part in parts))


def normal_path(target: str):
    """@returns path and query of a request's target @raises Malformed if a server may read the path otherwise than we do"""
    if not target.startswith("/") or not VISIBLE.fullmatch(target) or "#" in target:
        raise Malformed
    raw, _, query = target.partition("?")
    plain = path = NPM_NAME.sub(r"\1/", raw)
    for _ in range(MAX_DECODED):
        names = path.split("/")[1:]
        # A server may take what follows a semicolon for parameters of the name.
        if any(name.partition(";")[0] in (".", "..") for name in names) or "" in names[:-1]:
            raise Malformed
        if "\\" in path or AMBIGUOUS.search(path):
            raise Malformed
        decoded = urllib.parse.unquote(path, "latin-1")
        if decoded == path:
            return plain, query
        path = decoded
    raise Malformed
