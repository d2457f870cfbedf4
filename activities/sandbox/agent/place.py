"""Where the supervisor lives and works: in a container of our own, or attached to one that someone else owns. First part: see
sources.ts."""

import json
import os

# In a container that someone else owns: our folder in it, and the folder to work in (docker/attached.ts).
ATTACHED = json.loads(os.environ.pop("LONGHAUL_ATTACHED", "null"))
HOME = ATTACHED["home"] if ATTACHED else "/var/lib/longhaul"
# What the worker calls the folder to work in, and where that is.
NAMED_WORKSPACE = "/workspace"
WORKSPACE = os.path.realpath(ATTACHED["workspace"]) if ATTACHED else NAMED_WORKSPACE
# Tools run under these ids whatever the image calls them; attached, as the container's own user, who is ours too.
TOOL_UID = os.getuid() if ATTACHED else 1000
TOOL_GID = os.getgid() if ATTACHED else 1000
# Several sessions may be attached to one container: each finds the processes of its own.
MARK = f"LONGHAUL_CALL_{ATTACHED['mark']}" if ATTACHED else "LONGHAUL_CALL"
# Kernels know no use of this limit any more (RLIMIT_LOCKS), which children inherit whatever they do to environment, session and
# parents. A process may lower its own but never raise it, so later calls have lower numbers.
MARK_LIMIT = 10
MARK_LINE = b"Max file locks"
HIGHEST_NUMBER = ATTACHED["number"] if ATTACHED else 1 << 62


def place_of(cwd):
    """The folder in which a command runs."""
    path = cwd or ""
    if path == NAMED_WORKSPACE or path.startswith(NAMED_WORKSPACE + "/"):
        path = path[len(NAMED_WORKSPACE) + 1 :]
    return os.path.join(WORKSPACE, path)
