/** An answer that does not end within limits.modelTimeout. */
import { expect, it } from "vitest";
import { agentConfigSchema } from "../../activities/config/agent-config.ts";
import { modelDeadlines } from "../../activities/config/run-policy.ts";
import { directConfig, startDirectAgent, type DirectAgent } from "../support/direct-agent.ts";
import { scriptedModel, text, type ModelScript } from "../support/scripted-model.ts";
import { useDatabase } from "../support/test-database.ts";
import { billsOf } from "../support/stored.ts";

const database = useDatabase(5);

const limits = { ...agentConfigSchema.parse({}).limits, modelTimeout: 1_000 };

const start = (script: ModelScript) => startDirectAgent(database, script, { config: { limits } });

const attempt = (agent: DirectAgent, number: number) =>
  agent.perform("modelStep", { step: 1 }, { attempt: number });
const endless = (script: ModelScript) => script.answers(text("It goes on and on"), { type: "hang" });

it("is asked for twice and then ends the run with its reason", async () => {
  const agent = await start(endless(endless(scriptedModel())));
  await expect(attempt(agent, 1)).rejects.toMatchObject({ type: "ModelUnavailable", nonRetryable: false });
  await expect(attempt(agent, 2)).rejects.toMatchObject({
    type: "ModelTimeout",
    nonRetryable: true,
    message: expect.stringMatching(/limits\.modelTimeout.*twice in a row.*is kept/),
  });
  expect(agent.model.log).toHaveLength(2);
  const bills = await billsOf(database.store, agent.id);
  expect(bills.map(({ status, finish }) => [status, finish])).toEqual([
    ["wasted", "too-long"],
    ["wasted", "too-long"],
  ]);
});

it("is asked for again after failures of another kind, however many there were", async () => {
  const agent = await start(endless(scriptedModel().fails(503, "busy", { times: 2 })).says("Done."));
  for (const number of [1, 2, 3])
    await expect(attempt(agent, number)).rejects.toMatchObject({ nonRetryable: false });
  expect(await attempt(agent, 4)).toMatchObject({ kind: "answered" });
});

it("is ended before Temporal's own timeout, also if the attempt began long before", () => {
  const config = directConfig({ limits: { ...limits, modelTimeout: 600_000 } });
  expect(modelDeadlines(config, 0).answerMs).toBe(585_000);
  expect(modelDeadlines(config, 100_000).answerMs).toBe(485_000);
  expect(modelDeadlines(config, 700_000).answerMs).toBe(1);
});
