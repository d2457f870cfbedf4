"""Whether a program waits for what is typed: in which system call the programs in a terminal's foreground are, and on what."""

from __future__ import annotations

import os
import struct

from .process import as_tool, processes

# /dev/tty, the controlling terminal whatever its name.
CONTROLLING = os.makedev(5, 0)
# Numbers of system calls. Source: the kernel's tables for each machine.
CALLS = {
    "x86_64": {
        0: "read",
        19: "read",
        7: "poll",
        271: "poll",
        23: "select",
        270: "select",
        232: "epoll",
        281: "epoll",
        441: "epoll",
    },
    "aarch64": {63: "read", 65: "read", 73: "poll", 72: "select", 22: "epoll", 441: "epoll"},
}
# Of threads of a process, descriptors of a call. Chosen: more than a program has that reads a terminal.
MOST_THREADS = 64
MOST_DESCRIPTORS = 1024
POLLIN = 1


def waits_for_input(master: int, device: int):
    """None if it cannot be found out: no such system call is known, or a process cannot be inspected.
    @param master of the terminal @param device number of its other side"""
    names = CALLS.get(os.uname().machine)
    if names is None:
        return None
    answer: bool | None = False
    with as_tool():
        try:
            front = os.tcgetpgrp(master)
        except OSError:
            return None
        for pid, (_, group, _, _) in processes().items():
            if group != front:
                continue
            reads = reads_terminal(pid, device, names)
            if reads:
                return True
            if reads is None:
                answer = None
    return answer


def reads_terminal(pid: int, device: int, names: dict[int, str]):
    """Whether a thread of a process is waiting for the terminal. None if it cannot be found out."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")[:MOST_THREADS]
        for thread in threads:
            with open(f"/proc/{pid}/task/{thread}/syscall") as file:
                fields = file.read().split()
            # "running", or -1 outside a system call.
            if len(fields) < 4 or fields[0] == "-1":
                continue
            call = names.get(int(fields[0]))
            if call and any(
                is_terminal(pid, fd, device) for fd in waited_for(pid, call, [int(word, 16) for word in fields[1:4]])
            ):
                return True
    except FileNotFoundError:
        # It has ended.
        return False
    except (OSError, ValueError, struct.error):
        return None
    return False


def waited_for(pid: int, call: str, words: list[int]) -> list[int]:
    """The descriptors that a call waits to read from. @param words its arguments"""
    first, second = words[0], words[1]
    if call == "read":
        return [first]
    if call == "epoll":
        with open(f"/proc/{pid}/fdinfo/{first}") as file:
            rows = [line.split() for line in file if line.startswith("tfd:")]
        return [int(row[1]) for row in rows if int(row[3], 16) & POLLIN]
    if call == "poll":
        count = min(second, MOST_DESCRIPTORS)
        entries = struct.iter_unpack("ihh", memory_of(pid, first, count * 8)) if count else ()
        return [fd for fd, events, _ in entries if events & POLLIN]
    count = min(first, MOST_DESCRIPTORS)
    if second == 0 or count == 0:
        return []
    bits = int.from_bytes(memory_of(pid, second, (count + 63) // 64 * 8), "little")
    return [fd for fd in range(count) if bits >> fd & 1]


def memory_of(pid: int, address: int, size: int):
    """Bytes of a process's memory."""
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as file:
        return os.pread(file.fileno(), size, address)


def is_terminal(pid: int, fd: int, device: int):
    """Whether a descriptor of a process is the terminal."""
    try:
        return os.stat(f"/proc/{pid}/fd/{fd}").st_rdev in (device, CONTROLLING)
    except FileNotFoundError:
        return False
