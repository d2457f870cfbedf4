"""Ending a command with all it left behind. Part of the supervisor: see sources.ts."""

import os
import signal
import time

POLL_SECONDS = 0.01
# After this many sweeps in a row that each found new processes (a fork bomb that calls setsid), everything of the tools' uid
# is killed. A bomb grows back within 20 ms, and then a sweep takes 70-200 ms (measured).
BOMB_SWEEPS = 3
# What has not died within 5 s hangs in the kernel; it must not hold up the answer to the worker.
GIVE_UP_SWEEPS = 500


class Ending:
    """The half of a command that kills it."""

    def kill(self, by, grace_ms):
        """TERM to the group, KILL after the grace, then sweeps until nothing is left. Also kills what an ended command
        left behind."""
        if by == "timeout" and self.end:
            return
        if self.ending:
            self.ending["deadline"] = min(self.ending["deadline"], time.monotonic() + grace_ms / 1000)
            return
        if self.end and self.end["kind"] in ("refused", "lost"):
            return
        if self.pid is None and not self.end:
            self.refuse("it was killed before it began")
            return
        deadline = time.monotonic() + grace_ms / 1000
        self.ending = {"by": by, "deadline": deadline, "begun": False, "known": {}, "sweeps": 0, "grown": 0}
        self.continue_ending()

    def begin_ending(self):
        self.ending["begun"] = True
        # Another process may have its id once it was reaped.
        self.leader = self.pid if self.status is None and not self.end else None
        if self.leader is not None:
            # While its parents live: only they lead to a child with another environment and session.
            self.find_family()
            self.signal_group(signal.SIGTERM)

    def find_family(self):
        with as_tool():
            mark = f"{MARK}={self.id}".encode()
            self.ending["known"] = family(mark, self.number, self.leader, self.ending["known"])
        return self.ending["known"]

    def signal_group(self, number):
        """False when the group is empty."""
        try:
            with as_tool():
                os.killpg(self.leader, number)
            return True
        except ProcessLookupError:
            return False
        except PermissionError:
            return True

    def continue_ending(self):
        ending = self.ending
        overdue = time.monotonic() >= ending["deadline"]
        if not self.started:
            # Until it is the program, the child does not carry all its marks: it might not be found.
            if overdue:
                # A tool may have stopped it just before it became the program.
                self.child.kill()
            self.loop.after(POLL_SECONDS, self.continue_ending)
            return
        if not ending["begun"]:
            self.begin_ending()
        if self.leader is not None and not overdue and self.signal_group(0):
            self.loop.after(POLL_SECONDS, self.continue_ending)
            return
        before = ending["known"]
        found = self.find_family()
        if self.leader is not None:
            self.signal_group(signal.SIGKILL)
        new = any(before.get(pid) != born for pid, born in found.items())
        # The first sweep always finds new processes.
        ending["grown"] = ending["grown"] + 1 if new and ending["sweeps"] > 0 else 0
        ending["sweeps"] += 1
        with as_tool():
            for pid in found:
                kill_now(pid)
            # Attached, that would end its owner's processes too.
            if ending["grown"] >= BOMB_SWEEPS and not ATTACHED:
                kill_now(-1)
        if found and ending["sweeps"] < GIVE_UP_SWEEPS:
            self.loop.after(0 if new else POLL_SECONDS, self.continue_ending)
            return
        ending["swept"] = True
        if self.end:
            self.ending = None
            self.notify_ended()
        elif self.pipes:
            # A process outside the family may still hold the pipe.
            self.loop.after(DRAIN_SECONDS, self.conclude)
        self.conclude()
