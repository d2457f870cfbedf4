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

export function checkClosing(evidence: Evidence): Violation[] {
  const { session, sandboxes, runs, histories } = evidence;
  const status = lastStatus(evidence);
  const where = `session ${session.id}`;
  if (status === undefined) return [violation(where, "a run in Temporal", "none")];
  const list: Violation[] = [];
  const expected = STATUS[status] ?? [];
  // A run that waits for its first worker has not claimed the session yet.
  const owner = runs.at(-1)?.runId;
  const begun = status !== "RUNNING" || owner === histories.at(-1)?.runId;
  if (begun && !expected.includes(session.status))
    list.push(violation(where, `${expected.join(" or ")}, since the run is ${status}`, session.status));
  if (isClosed(evidence) && session.endedAt === null)
    list.push(violation(where, "the time of its end", "none"));
  if (isClosed(evidence) && session.container !== null)
    list.push(violation(where, "no container", session.container));
  if (status === "RUNNING" && begun && session.endedAt !== null)
    list.push(violation(where, "no end, since the run continues", session.endedAt.toISOString()));
  if (isClosed(evidence)) {
    for (const { kind, name } of sandboxes)
      list.push(violationOf(kind === "container" ? "I8" : "I9")(`${kind} ${name}`, "gone", "still there"));
  }
  return list;
}
