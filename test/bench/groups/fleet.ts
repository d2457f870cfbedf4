/** Many sessions on one worker: how much gets done, against the yardstick as often at once. */
import { gaps, median, quantile } from "../stats.ts";
import { runAgent, runYardstick, type Ran } from "../stand/runs.ts";
import type { Stand } from "../stand/stand.ts";
import { type Figure, ratioAtMost } from "../table.ts";
import { FLEETS, type Scale } from "./group.ts";

const LARGE = 50;

interface Throughput {
  readonly stepsPerSecond: number;
  readonly cpuMs: number;
  readonly stepMs: readonly number[];
}

export async function measureFleet(stand: Stand, scale: Scale): Promise<Figure[]> {
  const steps = scale.fleetSteps;
  const plan = { steps, calls: 1, tool: "probe" } as const;
  const figures: Figure[] = [];
  for (const size of FLEETS) {
    const ours: Throughput[] = [];
    const yard: Throughput[] = [];
    for (let round = 0; round < scale.fleetRounds; round += 1) {
      yard.push(await together(stand.yardstick, size * steps, size, () => runYardstick(stand, steps)));
      ours.push(await together(stand.agent, size * steps, size, () => runAgent(stand, plan, { bulk: true })));
    }
    stand.say(`${size} at once: ${rate(ours).toFixed(1)} against ${rate(yard).toFixed(1)} steps a second`);
    figures.push(...rows(size, ours, yard));
  }
  return figures;
}

const rate = (list: readonly Throughput[]) => median(list.map((one) => one.stepsPerSecond));
const cpu = (list: readonly Throughput[]) => median(list.map((one) => one.cpuMs));

function rows(size: number, ours: readonly Throughput[], yard: readonly Throughput[]): Figure[] {
  const n = ours.length;
  const stepMs = ours.flatMap((one) => one.stepMs);
  const p95 = quantile(stepMs, 0.95);
  return [
    {
      name: `${size} sessions at once: throughput`,
      value: rate(ours),
      unit: "steps/s",
      n,
      ratio: rate(ours) / rate(yard),
      goal: size >= LARGE ? { of: "ratio", atLeast: 0.85 } : undefined,
      note: `two activities ${rate(yard).toFixed(1)}; no containers; while all are at work`,
    },
    {
      name: `${size} sessions at once: step p95`,
      value: p95,
      unit: "ms",
      n: stepMs.length,
      ratio: p95 / median(stepMs),
      goal: size >= LARGE ? ratioAtMost(2) : undefined,
      note: `median ${median(stepMs).toFixed(0)} ms; ratio to it`,
    },
    {
      name: `${size} sessions at once: worker CPU a step`,
      value: cpu(ours),
      unit: "ms",
      n,
      ratio: cpu(ours) / cpu(yard),
      note: "openings and closings count",
    },
  ];
}

async function together(
  meter: Pick<Stand["agent"], "usage">,
  steps: number,
  size: number,
  run: () => Promise<Ran>,
): Promise<Throughput> {
  const before = await meter.usage();
  const ran = await Promise.all(Array.from({ length: size }, run));
  const after = await meter.usage();
  return {
    stepsPerSecond: steadyRate(ran.map((one) => one.starts)),
    cpuMs: (after.cpuMs - before.cpuMs) / steps,
    stepMs: ran.flatMap((one) => gaps(one.starts)),
  };
}

/** Steps a second while all of them are at work: openings and closings are not steps, and the yardstick has none. */
function steadyRate(sessions: readonly (readonly number[])[]): number {
  const from = Math.max(...sessions.map((starts) => starts[0] ?? Infinity));
  const to = Math.min(...sessions.map((starts) => starts.at(-1) ?? -Infinity));
  const steps = sessions.flat().filter((at) => at > from && at <= to).length;
  return to > from ? (steps * 1_000) / (to - from) : Number.NaN;
}
