"""The supervisor's folders and user ids: in a container of our own, or attached to one that someone else owns."""

from __future__ import annotations

import json
import os

# Set in a container that someone else owns: our folder in it, and the folder to work in (docker/attached-supervisor.ts).
ATTACHED = json.loads(os.environ.pop("LONGHAUL_ATTACHED", "null"))
HOME = ATTACHED["home"] if ATTACHED else "/var/lib/longhaul"
# The worker's name for the folder to work in, and its real path.
NAMED_WORKSPACE = "/workspace"
WORKSPACE = os.path.realpath(ATTACHED["workspace"]) if ATTACHED else NAMED_WORKSPACE
# Tools run under these ids whatever the image calls them; if attached, as the container's own user, as the supervisor does.
TOOL_UID = os.getuid() if ATTACHED else 1000
TOOL_GID = os.getgid() if ATTACHED else 1000
# Several sessions may be attached to one container: the mark tells their processes apart.
MARK = f"LONGHAUL_CALL_{ATTACHED['mark']}" if ATTACHED else "LONGHAUL_CALL"
# RLIMIT_LOCKS, which kernels no longer use. Children inherit it whatever they do to their environment, session and parents.
# A process may lower its own limit but never raise it, so later calls have lower numbers.
MARK_LIMIT = 10
MARK_LINE = b"Max file locks"
HIGHEST_NUMBER = ATTACHED["number"] if ATTACHED else 1 << 62


def folder_of(cwd: str | None):
    """The folder in which a command runs."""
    path = cwd or ""
    if path == NAMED_WORKSPACE or path.startswith(NAMED_WORKSPACE + "/"):
        path = path[len(NAMED_WORKSPACE) + 1 :]
    return os.path.join(WORKSPACE, path)
