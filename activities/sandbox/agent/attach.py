"""Checks whether a session can work in a container that someone else owns, and creates our folder in it.

Prints {"running": whether the supervisor is there already}, or {"unable": text}."""

from __future__ import annotations

import json
import os
import shutil
import socket

from .place import HOME, WORKSPACE

PROGRAMS = ("bash",)


def is_running():
    """Whether a supervisor answers at the session's socket."""
    peer = socket.socket(socket.AF_UNIX)
    try:
        peer.connect(f"{HOME}/control.sock")
        return True
    except OSError:
        return False
    finally:
        peer.close()


def attach():
    """@returns {"running"} or {"unable"} @raises OSError"""
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        return {"unable": f"it has no {' and no '.join(missing)}"}
    if not os.path.isdir(WORKSPACE):
        return {"unable": f"it has no folder {WORKSPACE}"}
    if not os.access(WORKSPACE, os.W_OK | os.X_OK):
        return {"unable": f"its user (uid {os.getuid()}) may not write to {WORKSPACE}"}
    os.makedirs(HOME, mode=0o700, exist_ok=True)
    if os.stat(HOME).st_uid != os.getuid():
        return {"unable": f"{HOME} belongs to another of its users"}
    return {"running": is_running()}


def main():
    try:
        print(json.dumps(attach()))
    except OSError as error:
        print(json.dumps({"unable": f"{error.strerror}: {error.filename!r}"[:300]}))


if __name__ == "__main__":
    main()
