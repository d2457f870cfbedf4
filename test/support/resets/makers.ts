/** Sessions that do not begin with a client's start of their own. */
import { parseBatch, itemSessionId } from "../../../client/batch/batch-file.ts";
import { startBatch } from "../../../client/batch/start-batch.ts";
import { forkSession } from "../../../client/sessions/fork-session.ts";
import type { RunConfig } from "../../../activities/config/agent-config.ts";
import { createSchedule } from "../../../activities/store/batches.ts";
import type { AgentHarness, RunningSession } from "../agent-harness.ts";
import { clientServices, sessionRow } from "../client-services.ts";
import { eventually } from "../eventually.ts";
import { startRun } from "../start-run.ts";

/** @param like a session that has ended, and whose task and settings the other one gets. @returns it, once its run has begun */
export type Maker = (agent: AgentHarness, like: RunningSession) => Promise<RunningSession>;

async function orderOf(agent: AgentHarness, { id }: RunningSession) {
  const { task, config } = await sessionRow(agent, id);
  return { task, config: config as RunConfig };
}

export const fork: Maker = async (agent, like) => {
  const forked = agent.adopt(`${like.id}-fork`, like);
  const request = { fromStep: 3, message: "Please go on.", id: forked.id };
  await forkSession(clientServices(agent), await sessionRow(agent, like.id), request);
  return forked;
};

export const batchItem: Maker = async (agent, like) => {
  const { task, config } = await orderOf(agent, like);
  const name = `${like.id}-batch`;
  const item = agent.adopt(itemSessionId(name, "one", 1), like);
  const { items } = parseBatch(JSON.stringify({ id: "one", task }));
  const start = { id: undefined, task, config, attachments: [], folder: undefined };
  await startBatch(clientServices(agent), {
    name,
    items: items.map((of) => ({ ...of, start })),
    concurrency: 1,
    stopAfter: undefined,
    maxCostUsd: undefined,
  });
  await eventually("the item begins", () => item.handle.describe().catch(() => undefined));
  return item;
};

export const scheduled: Maker = async (agent, like) => {
  const { task, config } = await orderOf(agent, like);
  const name = `${like.id}-nightly`;
  await createSchedule(agent.database.store.db, { name, task, config, owner: undefined });
  const started = agent.adopt(`${name}-2026-01-02T03:04:05Z`, like);
  await startRun(agent.client, started.id, agent.taskQueue, { schedule: name });
  return started;
};
