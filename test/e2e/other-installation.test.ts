/** Another installation on the same Temporal namespace, with its own database and task queue, runs something under one of our ids. */
import { randomBytes } from "node:crypto";
import { expect, inject, it } from "vitest";
import { BATCH_WORKFLOW_TYPE, batchWorkflowId } from "../../activities/contract/batch.ts";
import { createSession } from "../../activities/store/sessions.ts";
import { findSessionRow } from "../../activities/store/reading.ts";
import { cancelBatch, startBatch } from "../../client/batch/start-batch.ts";
import { exitCodes } from "../../client/console/errors.ts";
import { compactSession } from "../../client/sessions/compact-session.ts";
import { forkSession } from "../../client/sessions/fork-session.ts";
import { sendGuidance } from "../../client/sessions/guidance.ts";
import { retrySession } from "../../client/sessions/retry-session.ts";
import { readStatus } from "../../client/sessions/session-status.ts";
import { startSession } from "../../client/sessions/start-session.ts";
import { cancelSession, interruptSession } from "../../client/sessions/stop-session.ts";
import { forgetHistories } from "../../temporal/forget-histories.ts";
import { listRuns } from "../../temporal/runs.ts";
import { temporalRuns } from "../../temporal/session-runs.ts";
import { WORKFLOW_TYPE } from "../../workflows/messages.ts";
import { runConfig } from "../support/agent-harness.ts";
import { clientServices } from "../support/client-services.ts";
import { requireSession } from "../../client/sessions/with-session.ts";
import { eventually } from "../support/eventually.ts";
import { connectTo } from "../support/connections.ts";
import { perFile } from "../support/per-file.ts";
import { useDatabase } from "../support/test-database.ts";

const database = useDatabase();
const temporal = perFile(
  () => connectTo(inject("temporalAddress")),
  (connections) => connections.close(),
);
const newId = (what: string) => `${what}-${randomBytes(6).toString("hex")}`;
const services = () => clientServices({ client: temporal.client, taskQueue: newId("ours"), database });
const order = (id: string) => ({
  id,
  task: "Build it.",
  config: runConfig(),
  attachments: [],
  folder: undefined,
});
const refused = { exitCode: exitCodes.impossible };

/** Open until the test is over: no worker serves its queue. */
const theirRun = (workflowId: string, type = WORKFLOW_TYPE) =>
  temporal.client.workflow.start(type, { workflowId, taskQueue: newId("theirs"), args: [{}] });

const typesOf = async (handle: Awaited<ReturnType<typeof theirRun>>) =>
  ((await handle.fetchHistory()).events ?? []).map(
    (event) => Object.entries(event).find(([key, value]) => key.endsWith("Attributes") && value)?.[0],
  );

it("a session is not begun under an id that another installation runs, until that has ended", async () => {
  const id = newId("twin");
  const theirs = await theirRun(id);
  const ours = services();
  await expect(startSession(ours, order(id))).rejects.toMatchObject({
    ...refused,
    message: expect.stringContaining("another installation"),
  });
  expect(await findSessionRow(database.store.db, id)).toMatchObject({ status: "failed" });
  const parent = newId("parent");
  await createSession(database.store, { id: parent, task: "Build it.", config: runConfig() });
  await expect(
    forkSession(ours, await requireSession(ours, parent), {
      id,
      fromStep: undefined,
      message: undefined,
    }),
  ).rejects.toMatchObject({ ...refused, message: expect.stringContaining("another installation") });
  await theirs.terminate();
  const next = newId("twin");
  await (await theirRun(next)).terminate();
  expect(await startSession(ours, order(next))).toEqual({ id: next, attached: false });
  await temporal.client.workflow.getHandle(next).terminate();
});

it("nothing that is asked of a session reaches another installation's run of its id", async () => {
  const id = newId("twin");
  const ours = services();
  await createSession(database.store, { id, task: "Build it.", config: runConfig() });
  const row = await requireSession(ours, id);
  const theirs = await theirRun(id);
  const before = await typesOf(theirs);

  await expect(
    sendGuidance(ours, row, { id: undefined, text: "For mine.", attachments: [] }),
  ).rejects.toMatchObject(refused);
  await expect(interruptSession(ours, row, "Stop mine.")).rejects.toMatchObject(refused);
  await expect(compactSession(ours, row, undefined)).rejects.toMatchObject(refused);
  await expect(cancelSession(ours, row)).rejects.toMatchObject(refused);
  await expect(retrySession(ours, row, { fromStep: undefined, dropMessages: false })).rejects.toMatchObject(
    refused,
  );
  expect(await readStatus(ours, row)).toMatchObject({ live: false, queue: [] });

  expect(await typesOf(theirs)).toEqual(before);
  await theirs.terminate();
});

it("a batch of another installation's name is neither attached to nor cancelled", async () => {
  const name = newId("batch");
  const ours = services();
  const theirs = await theirRun(batchWorkflowId(name), BATCH_WORKFLOW_TYPE);
  const before = await typesOf(theirs);
  const start = order("");
  const batch = {
    name,
    items: [
      { id: "a", line: 1, task: "Build it.", ordinal: 1, digest: "d", start: { ...start, id: undefined } },
    ],
    concurrency: 1,
    stopAfter: undefined,
    maxCostUsd: undefined,
  };
  await expect(startBatch(ours, batch)).rejects.toMatchObject(refused);
  await expect(cancelBatch(ours, name)).rejects.toMatchObject(refused);
  expect(await typesOf(theirs)).toEqual(before);
  await theirs.terminate();
});

it("a run on another queue is ours if our rows have it, as after a change of the queue", async () => {
  const id = newId("moved");
  await createSession(database.store, { id, task: "Build it.", config: runConfig() });
  const theirs = await theirRun(id);
  await database.store.pool.query(
    "insert into runs (session_id, run_id, ordinal, epoch, chain, start_step) values ($1, $2, 1, 1, $2, 0)",
    [id, theirs.firstExecutionRunId],
  );
  const ours = services();
  await interruptSession(ours, await requireSession(ours, id), undefined);
  expect(await typesOf(theirs)).toContain("workflowExecutionSignaledEventAttributes");
  await theirs.terminate();
});

it("a worker neither cancels, reads nor deletes another installation's run of an id of ours", async () => {
  const id = newId("twin");
  const { client } = temporal;
  await createSession(database.store, { id, task: "Build it.", config: runConfig() });
  const theirs = await theirRun(id);
  await theirs.signal("guidance", "For theirs.");
  const { taskQueue } = services();
  const ours = temporalRuns(client, { db: database.store.db, taskQueue }, (text) => text);
  await ours.cancel(id);
  expect(await ours.isRunning(id)).toBe(false);
  expect(await typesOf(theirs)).not.toContain("workflowExecutionCancelRequestedEventAttributes");

  await theirs.terminate();
  const isListed = async () => {
    for await (const { status } of listRuns(client, { workflowId: id }))
      if (status === "TERMINATED") return true;
    return false;
  };
  await eventually("Temporal lists it as ended", isListed);
  expect(await ours.unkept(id, { inCharge: undefined })).toEqual([]);
  expect(await ours.newestEnded(id, "")).toBeUndefined();
  expect(
    await forgetHistories(client, { db: database.store.db, taskQueue }, { ids: [id], runs: [] }),
  ).toMatchObject({
    deleted: 0,
    left: 0,
  });
  expect(await typesOf(theirs)).toContain("workflowExecutionTerminatedEventAttributes");
});
