/** What completes no task: blanks, thoughts, and calls written as text. */
import { expect, it } from "vitest";
import { startDirectAgent } from "../support/direct-agent.ts";
import { playLoop } from "../support/direct-loop.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { useDatabase } from "../support/test-database.ts";

const database = useDatabase();
const written = '```json\n{"name": "bash", "arguments": {"command": "ls"}}\n```';

it.each(["\n\n", "<think>\nI look at it.\n</think>\n", "<think>I look", "I look at it.\n</think>"])(
  "the answer %j is empty: it is asked for again, and is no part of the result",
  async (nothing) => {
    const script = scriptedModel().says(nothing).says("Done.");
    const agent = await startDirectAgent(database, script);
    expect((await playLoop(agent)).status).toBe("completed");
    expect((await agent.dataOf("llm:response")).at(-1)).toMatchObject({ content: "Done." });
    expect(agent.model.requests).toHaveLength(2);
  },
);

it("a call written as text is asked for again with a line that says so, and then ends the session as a failure of its own", async () => {
  const agent = await startDirectAgent(database, scriptedModel().says(written).says(written));
  expect((await playLoop(agent)).status).toBe("CallInText");
  expect(agent.model.requests).toHaveLength(2);
  expect(JSON.stringify(agent.model.requests[1]?.raw)).toContain("a call written as text is not a call");
});

it("a call written as text is a call where the configuration reads such texts", async () => {
  const provider = {
    name: "openai",
    baseUrlEnv: "OPENAI_BASE_URL",
    keyEnv: "OPENAI_API_KEY",
    options: { callsInText: true },
  };
  const agent = await startDirectAgent(database, scriptedModel().says(written), { config: { provider } });
  await agent.perform("openSession", { chain: agent.runId });
  expect(await agent.perform("modelStep", { step: 1, guidance: [] })).toMatchObject({
    kind: "answered",
    calls: [{ name: "bash" }],
  });
  expect(await agent.dataOf("llm:tool-call")).toMatchObject([{ name: "bash", input: { command: "ls" } }]);
});
