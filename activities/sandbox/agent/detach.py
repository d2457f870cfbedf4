"""Ends what a session left running in a container that someone else owns, and removes its files.

Prints {"left": number of processes}."""

from __future__ import annotations

import json
import shutil
import time

from .place import HIGHEST_NUMBER, HOME, MARK
from .process import kill_now, number_of, processes, with_descendants

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

GIVE_UP_SECONDS = 5
# Numbers of one session's commands count down from HIGHEST_NUMBER; it has at most this many.
NUMBERS = 1 << 32


def environment_of(pid: int) -> list[bytes]:
    """Variables of a process (`name=value`); none if it has ended or is another user's. @param pid its id"""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        return []


def is_supervisor(pid: int):
    """@param pid a process id"""
    return f"LONGHAUL_HOME={HOME}".encode() in environment_of(pid)


def is_command(pid: int):
    """Whether a command of the session started the process. @param pid its id"""
    number = number_of(pid)
    if number is not None and HIGHEST_NUMBER - NUMBERS < number <= HIGHEST_NUMBER:
        return True
    return any(variable.startswith(f"{MARK}=".encode()) for variable in environment_of(pid))


def commands():
    """Processes of the session's commands: pid -> start time."""
    table = processes()
    return with_descendants({pid: born for pid, (*_, born) in table.items() if is_command(pid)}, table)


def supervisors():
    """Process ids of the session's supervisors."""
    return {pid for pid in processes() if is_supervisor(pid)}


def end(listed: Callable[[], Collection[int]]):
    """Kills the listed processes. @returns how many could not be ended"""
    deadline = time.monotonic() + GIVE_UP_SECONDS
    while left := listed():
        for pid in left:
            kill_now(pid)
        if time.monotonic() > deadline:
            return len(left)
        time.sleep(0.01)
    return 0


def main():
    # The supervisor last: it reaps the others.
    answer = {"left": end(commands) + end(supervisors)}
    shutil.rmtree(HOME, ignore_errors=True)
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
