/** I8 and I9: a closed run, an ended session and a sandbox that is gone come together. */
import { isClosed, lastStatus, type Evidence } from "./evidence.ts";
import { type Violation, violationOf } from "./violation.ts";

const STATUS: Readonly<Record<string, readonly string[]>> = {
  COMPLETED: ["completed", "max_steps"],
  FAILED: ["failed"],
  CANCELLED: ["cancelled"],
  // A run that Temporal ended wrote nothing; the reaper closes its session later.
  TERMINATED: ["active", "waiting", "cancelled", "completed", "failed", "max_steps"],
  TIMED_OUT: ["active", "waiting", "failed"],
  RUNNING: ["active", "waiting"],
};

const violation = violationOf("I8");

export function* checkClosing(evidence: Evidence): Iterable<Violation> {
  const { session, sandboxes, runs, histories } = evidence;
  const status = lastStatus(evidence);
  const where = `session ${session.id}`;
  if (status === undefined) return yield violation(where, "a run in Temporal", "none");
  const expected = STATUS[status] ?? [];
  // A run that waits for its first worker has not claimed the session yet.
  const owner = runs.at(-1)?.runId;
  const hasBegun = status !== "RUNNING" || owner === histories.at(-1)?.runId;
  if (hasBegun && !expected.includes(session.status))
    yield violation(where, `${expected.join(" or ")}, since the run is ${status}`, session.status);
  if (status === "RUNNING" && hasBegun && session.endedAt !== null)
    yield violation(where, "no end, since the run continues", session.endedAt.toISOString());
  if (!isClosed(evidence)) return;
  if (session.endedAt === null) yield violation(where, "the time of its end", "none");
  if (session.container !== null) yield violation(where, "no container", session.container);
  for (const { kind, name } of sandboxes)
    yield violationOf(kind === "container" ? "I8" : "I9")(`${kind} ${name}`, "gone", "still there");
}
