/** The name of the task queue is changed while runs are open on the old one: they are still this installation's, by their memo. */
import { randomBytes } from "node:crypto";
import { Client } from "@temporalio/client";
import { expect, it } from "vitest";
import { batchWorkflowId } from "../../activities/contract/batch.ts";
import { readInstallation } from "../../activities/store/installation.ts";
import { startBatch, cancelBatch } from "../../client/batch/start-batch.ts";
import { makeSchedule } from "../../client/schedules/make-schedule.ts";
import { startSession } from "../../client/sessions/start-session.ts";
import { createDataConverter, parseCodecKeys } from "../../temporal/codec.ts";
import { forgetHistories } from "../../temporal/forget-histories.ts";
import { describedOwnRun, listOwnRuns } from "../../temporal/own-runs.ts";
import { listRuns } from "../../temporal/runs.ts";
import { WORKFLOW_TYPE } from "../../workflows/messages.ts";
import { runConfig, useAgent } from "../support/agent-harness.ts";
import { clientServices, say } from "../support/client-services.ts";
import { changedConfig } from "../support/run-config.ts";
import { delegating } from "../support/delegating.ts";
import { eventually } from "../support/eventually.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { timesAsked } from "../support/scripted-summaries.ts";

const agent = useAgent();
const newId = (what: string) => `${what}-${randomBytes(6).toString("hex")}`;
/** Clients with the old name of the queue, which no worker serves. */
const before = (client: Client = agent.client) =>
  clientServices({ client, taskQueue: newId("old"), database: agent.database });
const order = (id: string) => ({
  id,
  task: "Build it.",
  config: runConfig(),
  attachments: [],
  folder: undefined,
});
const own = () => ({ db: agent.database.store.db, taskQueue: agent.taskQueue });

async function memoOf(id: string) {
  const { memo } = await agent.client.workflow.getHandle(id).describe();
  return memo?.["installation"];
}

async function untilListed(id: string, status: string) {
  await eventually(`Temporal lists ${id} as ${status}`, async () => {
    for await (const run of listRuns(agent.client, { workflowId: id }))
      if (run.status === status) return true;
    return false;
  });
}

it("a run that had not begun takes what is said, and all that it held is delivered", async () => {
  const like = await agent.run(scriptedModel().says("It lends its model.").says("All is read."));
  const { id, model } = agent.adopt(newId("unbegun"), like);
  await startSession(before(), order(id));
  const unbegun = agent.client.workflow.getHandle(id);
  await unbegun.signal("guidance", { id: "bare", text: "A bare signal." });
  const sent = await say(agent, id, { id: "later", text: "Said after the change." });
  expect(sent).toMatchObject({ queued: true, acknowledged: false, resumed: false });

  // Its queue has no worker any more: an operator ends it, and the next message starts a run on the new queue.
  await unbegun.terminate("its queue is gone");
  await untilListed(id, "TERMINATED");
  await say(agent, id, { id: "last", text: "Go on." });
  const run = agent.client.workflow.getHandle(id);
  expect(await run.result()).toMatchObject({ status: "completed", result: "All is read." });
  const said = ["A bare signal.", "Said after the change.", "Go on."];
  expect(said.map((text) => timesAsked(model, [text]))).toEqual([[1], [1], [1]]);
});

it("the histories of a deleted session go with it, also those of runs that never began", async () => {
  const id = newId("deleted");
  await startSession(before(), order(id));
  await agent.client.workflow.getHandle(id).terminate();
  await untilListed(id, "TERMINATED");
  expect(await forgetHistories(agent.client, own(), { ids: [id], runs: [] })).toMatchObject({ deleted: 1 });
});

it("a delegate, an item of a batch and a schedule's session are known as this installation's", async () => {
  const installation = await readInstallation(agent.database.store.db);
  const script = scriptedModel().says("It lends its model.").calls("delegate", { task: "Look." });
  const like = await agent.run(script.says("It is there.").says("Done."));
  const parent = agent.adopt(newId("parent"), like);
  await startSession(clientServices(agent), {
    ...order(parent.id),
    config: changedConfig(runConfig(), delegating()),
  });
  await parent.handle.result();
  expect(await memoOf(`${parent.id}.s1c0`)).toBe(installation);

  const name = newId("batch");
  const start = { ...order(""), id: undefined };
  const items = [{ id: "a", line: 1, task: start.task, ordinal: 1, digest: "d", start }];
  const batch = { name, items, concurrency: 1, stopAfter: undefined, maxCostUsd: undefined };
  await startBatch(clientServices(agent), batch);
  expect(await memoOf(batchWorkflowId(name))).toBe(installation);
  await eventually("the item's session has begun", async () => {
    return (await memoOf(`${name}-a`).catch(() => undefined)) === installation;
  });
  await cancelBatch(clientServices(agent), name).catch(() => undefined);

  const schedule = newId("nightly");
  const times = { cron: "0 6 1 1 *", timeZone: undefined, overlap: "skip" as const };
  await makeSchedule(before(), { ...order(""), ...times, name: schedule });
  const handle = agent.client.schedule.getHandle(schedule);
  await handle.trigger();
  const started = await eventually("it has started a session", async () => {
    return (await handle.describe()).info.recentActions[0]?.action.workflow.workflowId;
  });
  expect(await describedOwnRun(agent.client, own(), started)).toMatchObject({ status: "RUNNING" });
  await handle.delete();
  await agent.client.workflow.getHandle(started).terminate();
});

it("an encrypted memo is read with its key; without it, the queue decides", async () => {
  const keys = parseCodecKeys(`one:${randomBytes(32).toString("base64")}`);
  const { connection, options } = agent.client;
  const keyed = new Client({
    connection,
    namespace: options.namespace,
    dataConverter: createDataConverter(keys),
  });
  const id = newId("sealed");
  await startSession(before(keyed), order(id));
  expect(await describedOwnRun(keyed, own(), id)).toMatchObject({ status: "RUNNING" });
  expect(await describedOwnRun(agent.client, own(), id)).toBeUndefined();
  await untilListed(id, "RUNNING");
  const listed = [];
  for await (const run of listOwnRuns(keyed, own(), { workflowId: id })) listed.push(run);
  expect(listed).toMatchObject([{ workflowId: id }]);
  await keyed.workflow.getHandle(id).terminate();
});

it("a run with another installation's memo is not ours, also on our queue", async () => {
  const { client } = agent;
  const taskQueue = newId("shared");
  const id = newId("twin");
  const memo = { installation: "another" };
  const theirs = await client.workflow.start(WORKFLOW_TYPE, { workflowId: id, taskQueue, memo, args: [{}] });
  expect(await describedOwnRun(client, { ...own(), taskQueue }, id)).toBeUndefined();
  await theirs.terminate();
});
