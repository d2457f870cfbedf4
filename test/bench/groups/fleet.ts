/** Many sessions on one worker: how much gets done, against the yardstick as often at once. */
import { gaps, median, quantile } from "../stats.ts";
import { runAgent, runYardstick, type Ran } from "../stand/runs.ts";
import type { Stand } from "../stand/stand.ts";
import type { Figure } from "../table.ts";
import type { Scale } from "./group.ts";

const LARGE = 50;
const GOAL = { of: "ratio", atLeast: 0.85 } as const;

interface Throughput {
  readonly stepsPerSecond: number;
  readonly cpuMs: number;
  readonly stepMs: readonly number[];
}

export async function measureFleet(stand: Stand, scale: Scale): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const size of scale.fleets) {
    // Half as many where there are enough of them.
    const steps = size >= LARGE ? scale.fleetSteps / 2 : scale.fleetSteps;
    const ours: Throughput[] = [];
    const yard: Throughput[] = [];
    for (let round = 0; round < scale.fleetRounds; round += 1) {
      yard.push(await together(stand.yardstick, size * steps, size, () => runYardstick(stand, steps)));
      ours.push(await together(stand.agent, size * steps, size, () => agent(stand, steps)));
    }
    stand.say(`${size} at once: ${rate(ours).toFixed(1)} against ${rate(yard).toFixed(1)} steps a second`);
    figures.push(...rows(size, ours, yard));
  }
  return figures;
}

function agent(stand: Stand, steps: number): Promise<Ran> {
  return runAgent(stand, { steps, calls: 1, tool: "probe" }, { bulk: true });
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
      ...(size >= LARGE ? { goal: GOAL } : {}),
      note: `two activities ${rate(yard).toFixed(1)}; no containers; openings and closings count`,
    },
    {
      name: `${size} sessions at once: step p95`,
      value: p95,
      unit: "ms",
      n: stepMs.length,
      ratio: p95 / median(stepMs),
      ...(size >= LARGE ? { goal: { of: "ratio", atMost: 2 } as const } : {}),
      note: `median ${median(stepMs).toFixed(0)} ms; ratio to it`,
    },
    {
      name: `${size} sessions at once: worker CPU a step`,
      value: cpu(ours),
      unit: "ms",
      n,
      ratio: cpu(ours) / cpu(yard),
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
  const began = performance.now();
  const ran = await Promise.all(Array.from({ length: size }, run));
  const seconds = (performance.now() - began) / 1_000;
  const after = await meter.usage();
  return {
    stepsPerSecond: steps / seconds,
    cpuMs: (after.cpuMs - before.cpuMs) / steps,
    stepMs: ran.flatMap((one) => gaps(one.starts)),
  };
}
