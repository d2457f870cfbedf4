"""What the tools run with: their environment, and what the kernel lets them do. Part of the supervisor: see sources.ts."""

import os
import pwd


def own_isolation():
    """The supervisor's confinement as the kernel reports it; the tools' is at least as strict."""
    status = status_of("/proc/self")
    return {name: status[name] for name in ("Seccomp", "NoNewPrivs", "CapBnd") if name in status}


def tool_environment():
    """The image's own environment and the tools' user, with nothing from the worker's environment."""
    env = {key: value for key, value in os.environ.items() if key not in ("HOSTNAME", "HOME")}
    try:
        user = pwd.getpwuid(TOOL_UID)
        home, name = user.pw_dir, user.pw_name
    except KeyError:
        home, name = WORKSPACE, "agent"
    env.setdefault("LANG", "C.UTF-8")
    env.update(HOME=home, USER=name, LOGNAME=name, SHELL="/bin/bash", TERM="dumb", PAGER="cat", GIT_PAGER="cat")
    # On the tools' path only: the supervisor itself, which is root, runs nothing from a folder that they can write to.
    env["PATH"] = f"{home}/.local/bin:{env.get('PATH', os.defpath)}"
    env.update(GIT_TERMINAL_PROMPT="0", GIT_EDITOR="true", DEBIAN_FRONTEND="noninteractive")
    return env
