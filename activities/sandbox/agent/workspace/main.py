"""Saves, restores or counts the workspace. Runs as a command, with the tools' rights.

Input: a line of JSON {"do": "save", "restore", "list" or "count", limits, rebuilt, …}, then parts (see save.py and restore.py).
Output: what `save` or `restore` writes; on standard error, as JSON, what it returns, or {"lost": text}.
"""

import json
import sys

from ..usage import workspace_bytes
from .restore import restore
from .save import list_all, save
from .tree import Lost


class Part:
    """One part of the standard input; never reads beyond it."""

    def __init__(self, source, left):
        self.source = source
        self.left = left

    def read(self, count=-1):
        data = self.source.read(self.left if count < 0 else min(count, self.left))
        self.left -= len(data)
        if not data and count != 0 and self.left:
            raise EOFError("the input ended too early")
        return data


class Parts:
    """The parts that follow the order on the standard input, each after a line with its length."""

    def __init__(self, source):
        self.source = source

    def next(self):
        """The next part; None after the last."""
        line = self.source.readline()
        return Part(self.source, int(line)) if line else None

    def read(self):
        """@raises EOFError after the last part"""
        part = self.next()
        if part is None:
            raise EOFError("the input ended too early")
        return part.read()


ACTIONS = {
    "save": save,
    "restore": restore,
    "list": list_all,
    "count": lambda _order, _parts, _write: {"bytes": workspace_bytes()},
}


def main():
    source, out = sys.stdin.buffer, sys.stdout.buffer
    order = json.loads(source.readline())
    try:
        answer = ACTIONS[order["do"]](order, Parts(source), out.write)
    except Lost as error:
        answer = {"lost": str(error)}
    out.flush()
    sys.stderr.write(json.dumps(answer))


if __name__ == "__main__":
    main()
