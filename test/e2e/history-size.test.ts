/** The size of a step in Temporal's history: people read it there, and the server has limits. */
import { expect, it } from "vitest";
import { checkSession } from "../support/checker/check-session.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { useAgent } from "../support/agent-harness.ts";

const agent = useAgent();

it(
  "is at most 2.2 KB over 50 steps, whatever the tools print, even 50 MB",
  { tags: ["A14", "A15"] },
  async () => {
    const steps = 50;
    const script = scriptedModel();
    const printed = (step: number) => (step === 1 ? 50_000_000 : step * 2_000);
    for (let step = 0; step < steps; step += 1)
      script.calls("bash", { command: `head -c ${printed(step)} /dev/zero | tr '\\0' x; echo ${step}` });
    script.says("Done.");
    const session = await agent.run(script);
    const { workflowExecutionInfo: info } = (await session.handle.describe()).raw;
    const bytes = Number(info?.historySizeBytes);
    const perStep = bytes / (steps + 1);
    console.log(
      `history: ${perStep.toFixed(0)} bytes a step, ${(Number(info?.historyLength) / (steps + 1)).toFixed(1)} events a step`,
    );
    expect(perStep).toBeLessThanOrEqual(2_200);
    await checkSession(agent, session);
  },
);
