"""Ends a command and all processes that it left. Part of the supervisor: see sources.ts."""

import os
import signal
import time

POLL_SECONDS = 0.01
# After this many sweeps in a row that each found new processes (a fork bomb that calls setsid), all processes of the tools'
# uid are killed. A bomb grows back within 20 ms, and then a sweep takes 70-200 ms (measured).
BOMB_SWEEPS = 3
# A process that has not died within 5 s hangs in the kernel; it must not delay the answer to the worker.
GIVE_UP_SWEEPS = 500


class Ending:
    """The part of a command that kills it."""

    def kill(self, by, grace_ms):
        """TERM to the group, KILL after the grace period, then sweeps until no process is left. Also kills the processes that
        an ended command left."""
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
        # Once the process is reaped, another one may get its id.
        self.leader = self.pid if self.status is None and not self.end else None
        if self.leader is not None:
            # Before parents end: a child with another environment and session can only be found through its parents.
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
            # Before exec the child does not have all its marks, so a sweep might not find it.
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
            # In someone else's container that would kill the owner's processes too.
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
