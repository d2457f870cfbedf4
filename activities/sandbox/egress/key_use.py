"""What became of a session's keys, for its events: never a value, and of a path not its query."""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Each kind of use is reported once in this time, with its count.
REPORT_SECONDS = 60
MAX_REPORTED = 50
MAX_PATH_CHARS = 300


class KeyUse:
    """Counts uses and refusals by key, host and how they ended."""

    def __init__(self):
        # The first of its kind since the last report, how many, and when they were reported last (monotonic, in seconds).
        self.kinds: dict[tuple[object, ...], tuple[dict[str, Any], int, float | None]] = {}

    def used(self, key: str, host: str, method: str, path: str, status: int, unread: str | None):
        """@param unread how the answer was compressed, so that nothing was searched in it"""
        facts = {"what": "used", "key": key, "host": host, "method": method, "path": path[:MAX_PATH_CHARS], "status": status}
        self.count(("used", key, host, unread), {**facts, **({"unread": unread} if unread else {})})

    def refuse(self, key: str, host: str, method: str, path: str, reason: str):
        facts = {"what": "refused", "key": key, "host": host, "method": method, "path": path[:MAX_PATH_CHARS], "reason": reason}
        self.count(("refused", key, host, reason), facts)

    def count(self, kind: tuple[object, ...], facts: dict[str, Any]):
        if kind not in self.kinds and len(self.kinds) >= MAX_REPORTED:
            return
        first, count, reported = self.kinds.get(kind, (facts, 0, None))
        self.kinds[kind] = (first if count else facts, count + 1, reported)

    def report(self):
        """What is due, each counted once."""
        now = time.monotonic()
        due: list[dict[str, Any]] = []
        for kind, (first, count, reported) in list(self.kinds.items()):
            if reported is not None and now - reported < REPORT_SECONDS:
                continue
            if count:
                due.append({**first, "count": count})
                self.kinds[kind] = (first, 0, now)
            else:
                del self.kinds[kind]
        return due
