/** What completes no task: blanks, thoughts, and calls written as text. The facts of a step, from which the loop decides. */
import { expect, it } from "vitest";
import type { RunConfig } from "../../activities/config/agent-config.ts";
import { startDirectAgent } from "../support/direct-agent.ts";
import { scriptedModel, type ModelScript } from "../support/scripted-model.ts";
import { useDatabase } from "../support/test-database.ts";

const database = useDatabase();
const written = '```json\n{"name": "bash", "arguments": {"command": "ls"}}\n```';

/** The facts of a first step; none of its calls is run. */
async function firstStep(script: ModelScript, config: Partial<RunConfig> = {}) {
  const agent = await startDirectAgent(database, script, { config });
  await agent.perform("openSession", { chain: agent.runId });
  return { agent, facts: await agent.perform("modelStep", { step: 1 }) };
}

it.each(["\n\n", "<think>\nI look at it.\n</think>\n", "<think>I look", "I look at it.\n</think>"])(
  "the answer %j is empty, and nothing of it is stored",
  async (nothing) => {
    const { agent, facts } = await firstStep(scriptedModel().says(nothing));
    expect(facts.kind).toBe("empty");
    expect(await agent.dataOf("llm:response")).toEqual([]);
  },
);

it("a call written as text is told to the loop by its tool, and is not run", async () => {
  const { facts } = await firstStep(scriptedModel().says(written));
  expect(facts).toMatchObject({ kind: "answered", calls: [], finish: "stop", wroteCall: "bash" });
});

it("a call written as text is a call where the configuration reads such texts", async () => {
  const provider = {
    name: "openai",
    baseUrlEnv: "OPENAI_BASE_URL",
    keyEnv: "OPENAI_API_KEY",
    options: { callsInText: true },
  };
  const { agent, facts } = await firstStep(scriptedModel().says(written), { provider });
  expect(facts).toMatchObject({ kind: "answered", calls: [{ name: "bash" }] });
  expect(await agent.dataOf("llm:tool-call")).toMatchObject([{ name: "bash", input: { command: "ls" } }]);
});
