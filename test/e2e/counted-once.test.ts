/** What is asked of a model is counted once, whatever becomes of its line: a reset and a retry leave it, and a fork copies it. */
import { expect, it } from "vitest";
import { readUsage } from "../../activities/store/spending.ts";
import { forkSession } from "../../client/sessions/fork-session.ts";
import { retrySession } from "../../client/sessions/retry-session.ts";
import { useAgent } from "../support/agent-harness.ts";
import { clientServices, sessionRow } from "../support/client-services.ts";
import { resetToStep } from "../support/reset-run.ts";
import { scriptedModel } from "../support/scripted-model.ts";

const agent = useAgent();
const usage = { input: 10_000, output: 1_000, cached: 0, reasoning: 0 };
/** $0.20 a call. */
const price = { input: 10, cached: 10, output: 100 };

const counted = async (owner: string) => {
  const rows = await readUsage(agent.database.store.db, ["person"], {
    since: "2000-01-01",
    before: "2100-01-01",
  });
  const row = rows.find(({ of: [person] }) => person === owner);
  return row && { calls: row.calls, sessions: row.sessions, usd: Number(row.costUsd.toFixed(6)) };
};

it("each call counts once after a reset, a retry and a fork, those of abandoned steps too", async () => {
  const script = scriptedModel();
  for (let step = 1; step <= 3; step += 1) script.calls("bash", { command: `echo ${step}` }).with({ usage });
  for (const line of ["first", "reset", "retried", "forked"])
    script.says(`The ${line} line.`).with({ usage });
  const session = await agent.start(script, { owner: "ann", config: { price } });
  await session.result();
  expect(await counted("ann")).toEqual({ calls: 4, sessions: 1, usd: 0.8 });

  const runId = await resetToStep(agent.client, session.id, 4);
  await agent.client.workflow.getHandle(session.id, runId).result();
  expect(await counted("ann")).toEqual({ calls: 5, sessions: 1, usd: 1 });

  const row = await sessionRow(agent, session.id);
  const retried = await retrySession(clientServices(agent), row, { fromStep: 4, dropMessages: false });
  await agent.client.workflow.getHandle(session.id, retried.runId).result();
  expect(await counted("ann")).toEqual({ calls: 6, sessions: 1, usd: 1.2 });

  const forked = agent.adopt(`${session.id}-fork`, session);
  const order = { fromStep: 4, message: "Take the other way.", id: forked.id };
  await forkSession(clientServices(agent), await sessionRow(agent, session.id), order);
  await forked.handle.result();
  expect(await counted("ann")).toEqual({ calls: 7, sessions: 2, usd: 1.4 });
  expect(session.model.requests).toHaveLength(7);
});
