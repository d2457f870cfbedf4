"""Puts Git LFS objects into the store of the repository in the current folder. Runs as a command, with the tools' rights.

Input: for each object a line "oid size", then so many bytes.
"""

import os
import subprocess
import sys

PIECE_BYTES = 1024 * 1024


def main():
    given = sys.stdin.buffer
    folder = subprocess.check_output(["git", "rev-parse", "--git-common-dir"]).strip()
    store = os.path.join(folder, b"lfs", b"objects")
    while True:
        head = given.readline()
        if not head:
            return
        oid, size = head.split()
        left = int(size)
        place = os.path.join(store, oid[:2], oid[2:4])
        os.makedirs(place, exist_ok=True)
        part = os.path.join(place, oid + b".part")
        with open(part, "wb") as file:
            while left > 0:
                piece = given.read(min(left, PIECE_BYTES))
                if not piece:
                    raise EOFError("an object of Git LFS ended early")
                file.write(piece)
                left -= len(piece)
        os.rename(part, os.path.join(place, oid))


if __name__ == "__main__":
    main()
