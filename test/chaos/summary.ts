/** The result of a soak, as a table. Pure. */
import { forkedAt, type Evidence } from "../support/checker/evidence.ts";
import type { Violation } from "../support/checker/violation.ts";

export interface CheckedRun {
  readonly id: string;
  readonly status: string;
  /** Absent if it could not be collected. */
  readonly evidence: Evidence | undefined;
  readonly violations: readonly Violation[];
}

export interface SoakResult {
  readonly seed: number;
  readonly minutes: number;
  readonly faults: ReadonlyMap<string, number>;
  readonly sessions: readonly CheckedRun[];
  /** Leaks and deaths, one line each. */
  readonly others: readonly string[];
  readonly rss: string;
}

export function failuresOf({ sessions, others }: SoakResult): number {
  return sessions.reduce((sum, session) => sum + session.violations.length, 0) + others.length;
}

export function renderSummary(result: SoakResult): string {
  const { sessions } = result;
  const sum = (of: (evidence: Evidence) => number) =>
    sessions.reduce((all, { evidence }) => all + (evidence ? of(evidence) : 0), 0);
  const statuses = new Map<string, number>();
  for (const { status } of sessions) statuses.set(status, (statuses.get(status) ?? 0) + 1);
  const rows: [string, string | number][] = [
    ["seed", result.seed],
    ["minutes of faults", result.minutes],
    ["sessions", `${sessions.length} (${list(statuses)})`],
    ["of which forks", sum((evidence) => (forkedAt(evidence) > 0 ? 1 : 0))],
    ["runs in Temporal", sum((evidence) => evidence.histories.length)],
    ["answers kept", sum((evidence) => evidence.messages.filter((row) => row.slot === "assistant").length)],
    ["requests to the model", sum((evidence) => evidence.served?.length ?? 0)],
    ["tool calls", sum((evidence) => evidence.calls.length)],
    [
      "of which unknown",
      sum((evidence) => evidence.calls.filter((call) => call.status === "unknown").length),
    ],
    ["marks counted", sum((evidence) => [...(evidence.marks?.values() ?? [])].flat().length)],
    ["epochs begun by resets", sum(({ session, runs }) => session.epoch - (runs[0]?.epoch ?? session.epoch))],
    [
      "rounds of compaction",
      sum((evidence) => evidence.rounds.filter((round) => round.status === "compacted").length),
    ],
    ["messages accepted", sum((evidence) => new Set(evidence.histories.flatMap((run) => run.accepted)).size)],
    [
      "faults",
      `${[...result.faults.values()].reduce((all, count) => all + count, 0)} (${list(result.faults)})`,
    ],
    ["workers' memory", result.rss],
    ["violations", failuresOf(result)],
  ];
  const width = Math.max(...rows.map(([name]) => name.length));
  const table = rows.map(([name, value]) => `${name.padEnd(width)}  ${value}`).join("\n");
  const details = [
    ...result.others.map((line) => `- ${line}`),
    ...sessions.flatMap(({ id, violations }) =>
      violations.map(
        ({ claim, where, expected, found }) =>
          `- ${claim} ${id} (seed ${result.seed}), at ${where}: expected ${expected}; found ${found}`,
      ),
    ),
  ];
  return [table, ...(details.length > 0 ? ["", ...details] : [])].join("\n");
}

function list(counts: ReadonlyMap<string, number>): string {
  return [...counts].map(([name, count]) => `${name} ${count}`).join(", ");
}
