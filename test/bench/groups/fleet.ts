/** Many sessions on one worker: how much gets done, against the yardstick as often at once. */
import { gaps, median, quantile } from "../stats.ts";
import { runAgent, runYardstick, type Ran } from "../stand/runs.ts";
import type { Stand } from "../stand/stand.ts";
import type { Figure } from "../table.ts";
import type { Scale } from "./group.ts";

const SESSIONS = 50;

interface Throughput {
  readonly stepsPerSecond: number;
  /** Of the worker, a step; openings and closings count. */
  readonly cpuMs: number;
  readonly stepMs: readonly number[];
}

export async function measureFleet(stand: Stand, scale: Scale): Promise<Figure[]> {
  const steps = scale.fleetSteps;
  const plan = { steps, calls: 1, tool: "probe" } as const;
  const ours: Throughput[] = [];
  const yard: Throughput[] = [];
  for (let round = 0; round < scale.fleetRounds; round += 1) {
    yard.push(await together(stand.yardstick, steps, () => runYardstick(stand, steps)));
    ours.push(await together(stand.agent, steps, () => runAgent(stand, plan, { bulk: true })));
  }
  const stepMs = ours.flatMap((throughput) => throughput.stepMs);
  const p95 = quantile(stepMs, 0.95).toFixed(0);
  const cpuMs = median(ours.map((throughput) => throughput.cpuMs)).toFixed(1);
  return [
    {
      name: `${SESSIONS} sessions at once: throughput`,
      value: rate(ours),
      unit: "steps/s",
      n: ours.length,
      ratio: rate(ours) / rate(yard),
      goal: { of: "ratio", atLeast: 0.85 },
      note: `two activities ${rate(yard).toFixed(1)}; no containers; while all are at work; a step ${median(stepMs).toFixed(0)} ms, p95 ${p95}; worker CPU ${cpuMs} ms a step`,
    },
  ];
}

const rate = (list: readonly Throughput[]) => median(list.map((throughput) => throughput.stepsPerSecond));

async function together(
  meter: Pick<Stand["agent"], "usage">,
  steps: number,
  run: () => Promise<Ran>,
): Promise<Throughput> {
  const before = await meter.usage();
  const ran = await Promise.all(Array.from({ length: SESSIONS }, run));
  const after = await meter.usage();
  return {
    stepsPerSecond: steadyRate(ran.map((session) => session.starts)),
    cpuMs: (after.cpuMs - before.cpuMs) / SESSIONS / steps,
    stepMs: ran.flatMap((session) => gaps(session.starts)),
  };
}

/** Steps a second while all of them are at work: openings and closings are not steps, and the yardstick has none. */
function steadyRate(sessions: readonly (readonly number[])[]): number {
  const from = Math.max(...sessions.map((starts) => starts[0] ?? Infinity));
  const to = Math.min(...sessions.map((starts) => starts.at(-1) ?? -Infinity));
  const steps = sessions.flat().filter((at) => at > from && at <= to).length;
  return to > from ? (steps * 1_000) / (to - from) : Number.NaN;
}
