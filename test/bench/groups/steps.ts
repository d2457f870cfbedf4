/** What a step costs: against two no-op activities, with four tools at once, in processor time. */
import { gaps, median, sum } from "../stats.ts";
import type { Span } from "../stand/meter.ts";
import type { Plan } from "../stand/plan.ts";
import { runAgent, runYardstick } from "../stand/runs.ts";
import type { Stand } from "../stand/stand.ts";
import { type Figure, type Goal, middleOf, ratioAtMost } from "../table.ts";
import type { Scale } from "./group.ts";

const onePlan: Plan = { steps: 0, calls: 1, tool: "probe" };
/** The first steps share the machine with the container's creation. */
const WARM_STEPS = 8;

interface Sample {
  readonly ms: number[];
  readonly cpuMs: number[];
  readonly spans: Span[];
  steps: number;
}

const sample = (): Sample => ({ ms: [], cpuMs: [], spans: [], steps: 0 });

export async function measureSteps(stand: Stand, scale: Scale): Promise<Figure[]> {
  const { rounds, steps } = scale;
  const yard = sample();
  const [probe, four, bash] = [sample(), sample(), sample()];
  // First steps are not typical.
  await yardstick(stand, WARM_STEPS, sample());
  await agent(stand, { ...onePlan, steps: WARM_STEPS }, sample());
  for (let round = 0; round < rounds; round += 1) {
    await yardstick(stand, steps, yard);
    await agent(stand, { ...onePlan, steps }, probe);
    await yardstick(stand, steps, yard);
    await agent(stand, { ...onePlan, steps, tool: "bash", command: "true {key}" }, bash);
    await agent(stand, { ...onePlan, steps: Math.ceil(steps / 2), calls: 4 }, four);
    stand.say(
      `round ${round + 1} of ${rounds}: two activities ${median(yard.ms).toFixed(1)} ms, a step ${median(probe.ms).toFixed(1)} ms`,
    );
  }
  const yardMs = median(yard.ms);
  const probeMs = median(probe.ms);
  const figure = (name: string, from: Sample, goal?: Goal): Figure =>
    middleOf(name, from.ms, { ratio: median(from.ms) / yardMs, goal });
  return [
    figure("two no-op activities (the yardstick)", yard),
    figure("full step, no-op tool", probe, ratioAtMost(1.35)),
    figure("full step, bash `true` in the sandbox", bash),
    middleOf("step of four tools at once", four.ms, {
      ratio: median(four.ms) / probeMs,
      goal: ratioAtMost(1.6),
      note: "ratio to one tool",
    }),
    middleOf("worker CPU a step, one session", probe.cpuMs, {
      ratio: median(probe.cpuMs) / median(yard.cpuMs),
      note: "whole session",
    }),
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
  into.spans.push(...spans);
  into.steps += counted;
}

/** Where the time between two model calls goes. */
function breakdown(from: Sample, stepMs: number): Figure[] {
  const perStep = (kind: Span["kind"], name: string) =>
    sum(from.spans.filter((span) => span.kind === kind && span.name === name).map((span) => span.ms)) /
    from.steps;
  const ask = perStep("model", "ask");
  const model = perStep("activity", "modelStep");
  const tool = perStep("activity", "runTool");
  const parts = {
    "model call (AI SDK and the wire)": ask,
    "the rest of modelStep": model - ask,
    runTool: tool,
    "Temporal (all outside the activities)": stepMs - model - tool,
  };
  return Object.entries(parts).map(([name, value]) => ({
    name: `  of it: ${name}`,
    value,
    unit: "ms",
    n: from.steps,
  }));
}
