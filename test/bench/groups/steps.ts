/** What a step costs: against two no-op activities, with four tools at once, in statements and processor time. */
import { gaps, median, sum } from "../stats.ts";
import type { Span } from "../stand/meter.ts";
import type { Plan } from "../stand/plan.ts";
import { runAgent, runYardstick } from "../stand/runs.ts";
import type { Stand } from "../stand/stand.ts";
import type { Figure } from "../table.ts";
import type { Scale } from "./group.ts";

const one: Plan = { steps: 0, calls: 1, tool: "probe" };
/** The first steps share the machine with the container's creation. */
const WARM_STEPS = 8;

interface Sample {
  readonly ms: number[];
  readonly cpuMs: number[];
  readonly sqlPerStep: number[];
  readonly spans: Span[];
  steps: number;
}

const sample = (): Sample => ({ ms: [], cpuMs: [], sqlPerStep: [], spans: [], steps: 0 });

export async function measureSteps(stand: Stand, scale: Scale): Promise<Figure[]> {
  const { rounds, steps } = scale;
  const yard = sample();
  const [probe, four, bash] = [sample(), sample(), sample()];
  // First steps are not typical.
  await yardstick(stand, WARM_STEPS, sample());
  await agent(stand, { ...one, steps: WARM_STEPS }, sample());
  for (let round = 0; round < rounds; round += 1) {
    await yardstick(stand, steps, yard);
    await agent(stand, { ...one, steps }, probe);
    await yardstick(stand, steps, yard);
    await agent(stand, { ...one, steps, tool: "bash", command: "true {key}" }, bash);
    await agent(stand, { ...one, steps: Math.ceil(steps / 2), calls: 4 }, four);
    stand.say(
      `round ${round + 1} of ${rounds}: two activities ${median(yard.ms).toFixed(1)} ms, a step ${median(probe.ms).toFixed(1)} ms`,
    );
  }
  const yardMs = median(yard.ms);
  const probeMs = median(probe.ms);
  const figure = (name: string, from: Sample): Figure => ({
    name,
    value: median(from.ms),
    unit: "ms",
    n: from.ms.length,
    ratio: median(from.ms) / yardMs,
  });
  return [
    figure("two no-op activities (the yardstick)", yard),
    { ...figure("full step, no-op tool", probe), goal: { of: "ratio", atMost: 1.2 } },
    figure("full step, bash `true` in the sandbox", bash),
    {
      ...figure("step of four tools at once", four),
      ratio: median(four.ms) / probeMs,
      goal: { of: "ratio", atMost: 1.6 },
      note: "ratio to one tool",
    },
    {
      name: "SQL statements a step (begin, commit counted)",
      value: median(probe.sqlPerStep),
      unit: "",
      n: probe.sqlPerStep.length,
      note: `bash step ${median(bash.sqlPerStep).toFixed(1)}, with its workspace check`,
    },
    {
      name: "worker CPU a step, one session",
      value: median(probe.cpuMs),
      unit: "ms",
      n: probe.cpuMs.length,
      ratio: median(probe.cpuMs) / median(yard.cpuMs),
      note: "whole session",
    },
    ...breakdown(probe, probeMs),
  ];
}

async function yardstick(stand: Stand, steps: number, into: Sample): Promise<void> {
  const before = await stand.yardstick.usage();
  const { starts } = await runYardstick(stand, steps);
  const after = await stand.yardstick.usage();
  into.ms.push(...gaps(starts.slice(WARM_STEPS)));
  into.cpuMs.push((after.cpuMs - before.cpuMs) / steps);
}

async function agent(stand: Stand, plan: Plan, into: Sample): Promise<void> {
  await stand.agent.spans();
  const before = await stand.agent.usage();
  const { starts } = await runAgent(stand, plan);
  const after = await stand.agent.usage();
  const warm = starts.slice(WARM_STEPS);
  const [from, to] = [warm[0] ?? 0, warm.at(-1) ?? 0];
  const spans = (await stand.agent.spans()).filter((span) => span.at >= from && span.at < to);
  const counted = warm.length - 1;
  into.ms.push(...gaps(warm));
  into.cpuMs.push((after.cpuMs - before.cpuMs) / plan.steps);
  into.sqlPerStep.push(spans.filter((span) => span.kind === "sql").length / counted);
  into.spans.push(...spans);
  into.steps += counted;
}

/** Where the time between two model calls goes. Statements run inside the activities, some of them side by side. */
function breakdown(from: Sample, stepMs: number): Figure[] {
  const perStep = (keep: (span: Span) => boolean) =>
    sum(from.spans.filter(keep).map((span) => span.ms)) / from.steps;
  const model = perStep((span) => span.kind === "activity" && span.name === "modelStep");
  const ask = perStep((span) => span.kind === "model");
  const tool = perStep((span) => span.kind === "activity" && span.name === "runTool");
  const row = (name: string, value: number, note?: string): Figure => ({
    name: `  of it: ${name}`,
    value,
    unit: "ms",
    n: from.steps,
    ...(note === undefined ? {} : { note }),
  });
  return [
    row("model call (AI SDK and the wire)", ask),
    row("the rest of modelStep", model - ask),
    row("runTool", tool),
    row(
      "statements, summed",
      perStep((span) => span.kind === "sql"),
      busiest(from),
    ),
    row("Temporal (all outside the activities)", stepMs - model - tool),
  ];
}

/** The statements that take most of a step. */
function busiest(from: Sample): string {
  const totals = new Map<string, { count: number; ms: number }>();
  for (const { kind, name, ms } of from.spans) {
    if (kind !== "sql") continue;
    const total = totals.get(name) ?? { count: 0, ms: 0 };
    totals.set(name, { count: total.count + 1, ms: total.ms + ms });
  }
  return [...totals]
    .toSorted(([, a], [, b]) => b.ms - a.ms)
    .slice(0, 5)
    .map(([name, { count, ms }]) => {
      const times = (count / from.steps).toFixed(1);
      return `${times} x ${name} ${(ms / from.steps).toFixed(2)}`;
    })
    .join("; ");
}
