/** Which run may write: one that has opened the session and is Temporal's current one. All others change nothing. */
import { randomBytes } from "node:crypto";
import { expect, it } from "vitest";
import { createActivities } from "../../activities/index.ts";
import { findSessionRow } from "../../activities/store/reading.ts";
import { readWaiting } from "../../activities/store/guidance.ts";
import { takeOver } from "../../activities/store/runs.ts";
import { createSession } from "../../activities/store/sessions.ts";
import { runConfig, useAgent } from "../support/agent-harness.ts";
import { checkSession } from "../support/checker/check-session.ts";
import { resetToStep } from "../support/reset-run.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { resultTexts, transcriptOf } from "../support/stored.ts";
import { createTestWorker } from "../support/test-worker.ts";
import { startRun, startRunFor } from "../support/start-run.ts";
import { retry } from "../support/client-services.ts";
import { timesAsked } from "../support/scripted-summaries.ts";
import { playConnections } from "../support/play-loop.ts";

const agent = useAgent();

/** A worker for a queue that had none so far. */
async function workOn<T>(taskQueue: string, body: () => Promise<T>): Promise<T> {
  const activities = createActivities(agent.deps);
  const announceStop = agent.deps.announcements.announceStop;
  const { native: connection } = await playConnections();
  const worker = await createTestWorker({ taskQueue, connection, activities, announceStop });
  return worker.runUntil(body);
}

const newQueue = () => `test-late-${randomBytes(4).toString("hex")}`;

it("a message to a session cancelled before its run began only waits: nothing else changes", async () => {
  const script = scriptedModel()
    .calls("write_file", { path: "kept.txt", content: "kept" })
    .says("The first task is done.")
    .calls("bash", { command: "cat kept.txt" })
    .says("The second task is done.");
  const session = await agent.run(script);
  const rows = await transcriptOf(agent.database.store, session.id);
  const before = await findSessionRow(agent.database.store.db, session.id);
  const taskQueue = newQueue();
  const message = { id: "second", text: "now the second task" };
  const late = await startRunFor(agent.client, session.id, taskQueue, message);
  await late.cancel();
  await expect(workOn(taskQueue, () => late.result())).rejects.toThrow();
  expect((await late.describe()).status.name).toBe("CANCELLED");
  expect(await transcriptOf(agent.database.store, session.id)).toEqual(rows);
  expect(await findSessionRow(agent.database.store.db, session.id)).toEqual(before);
  expect(await readWaiting(agent.database.store.db, session.id)).toMatchObject([{ id: "second" }]);

  const again = await startRun(agent.client, session.id, agent.taskQueue);
  expect(await again.result()).toMatchObject({ result: "The second task is done." });
  expect((await resultTexts(agent.database.store, session.id)).at(-1)).toBe("kept");
  expect(timesAsked(session.model, ["now the second task"])).toEqual([1]);
  await checkSession(agent, session);
});

it("a new session that is cancelled before its run began is cancelled, and can be resumed", async () => {
  const like = await agent.run(scriptedModel().says("It lends its model.").says("Done."));
  const made = agent.adopt(`${like.id}-new`, like);
  await createSession(agent.database.store, { id: made.id, task: "Do it.", config: runConfig() });
  const taskQueue = newQueue();
  const first = await startRun(agent.client, made.id, taskQueue);
  await first.cancel();
  await expect(workOn(taskQueue, () => first.result())).rejects.toThrow();
  expect(await findSessionRow(agent.database.store.db, made.id)).toMatchObject({
    status: "cancelled",
    epoch: 1,
  });
  const again = await startRun(agent.client, made.id, agent.taskQueue);
  expect(await again.result()).toMatchObject({ status: "completed", result: "Done." });
});

it("of two retries at once, the one whose run was replaced does not claim the session", async () => {
  const like = await agent.run(scriptedModel().says("It lends its model.").says("One.").says("Two."));
  const made = agent.adopt(`${like.id}-two`, like);
  await createSession(agent.database.store, { id: made.id, task: "Do it.", config: runConfig() });
  const taskQueue = newQueue();
  const first = await startRun(agent.client, made.id, taskQueue);
  await workOn(taskQueue, () => first.result());
  // Without a worker meanwhile, the clients alone decide.
  const replaced = await resetToStep(agent.client, made.id, 1);
  const retried = await retry(agent, made.id, 1);
  const at = { step: 1, phase: "model" } as const;
  expect(await takeOver(agent.deps, { sessionId: made.id, runId: replaced }, at)).toBe("superseded");
  const current = agent.client.workflow.getHandle(made.id);
  expect((await current.describe()).runId).toBe(retried.runId);
  expect(await workOn(taskQueue, () => current.result())).toMatchObject({ result: "Two." });
});
