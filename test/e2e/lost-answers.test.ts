/** Temporal does what a client asks, and the answer is lost: the client asks what became of it, and a second attempt adopts it. */
import { randomBytes } from "node:crypto";
import { expect, it, onTestFinished } from "vitest";
import { batchWorkflowId } from "../../activities/contract/batch.ts";
import { removeSchedule } from "../../activities/store/batches.ts";
import { startBatch } from "../../client/batch/start-batch.ts";
import {
  deleteSchedule,
  pauseSchedule,
  readSchedules,
  triggerSchedule,
} from "../../client/schedules/schedules.ts";
import { makeSchedule } from "../../client/schedules/make-schedule.ts";
import { forkSession } from "../../client/sessions/fork-session.ts";
import { retrySession } from "../../client/sessions/retry-session.ts";
import { sendGuidance } from "../../client/sessions/guidance.ts";
import { startSession } from "../../client/sessions/start-session.ts";
import { exitCodes } from "../../client/console/errors.ts";
import { runConfig, useAgent } from "../support/agent-harness.ts";
import { clientServices, sessionRow } from "../support/client-services.ts";
import { eventually } from "../support/eventually.ts";
import { losingAnswers } from "../support/losing-answers.ts";
import { scriptedModel, text } from "../support/scripted-model.ts";
import { timesAsked } from "../support/scripted-summaries.ts";

const agent = useAgent();

const START = "startWorkflowExecution";
const DESCRIBE = "describeWorkflowExecution";
const order = (id: string | undefined, task = "Build it.") => ({
  id,
  task,
  config: runConfig(),
  attachments: [],
  folder: undefined,
});
const newId = (what: string) => `${what}-${randomBytes(4).toString("hex")}`;
/** Temporal does not say either what became of it. */
const SILENT = { exitCode: exitCodes.missing, fix: expect.stringContaining("longhaul ") };

/** A session that has ended, and lends its model to others. */
const ended = () =>
  agent.run(
    scriptedModel()
      .says("Done.")
      .forever({ parts: [text("Done again.")] }),
  );

it("a start whose answer is lost has started, or the same start attaches to it", async () => {
  const like = await ended();
  const services = clientServices(agent);
  const first = agent.adopt(newId("start"), like);
  expect(await startSession(losingAnswers(services, [START]), order(first.id))).toEqual({
    id: first.id,
    attached: false,
  });
  expect(await first.result()).toMatchObject({ result: "Done again." });
  const second = agent.adopt(newId("start"), like);
  const silent = losingAnswers(services, [START], [DESCRIBE]);
  await expect(startSession(silent, order(second.id))).rejects.toMatchObject({
    ...SILENT,
    message: expect.stringContaining(second.id),
  });
  expect(await startSession(services, { ...order(second.id), acceptEnded: true })).toEqual({
    id: second.id,
    attached: true,
  });
  expect(await second.result()).toMatchObject({ result: "Done again." });
});

it("a message whose answer is lost is sent once, or goes again under its id", async () => {
  const session = await ended();
  const services = clientServices(agent);
  const row = await sessionRow(agent, session.id);
  const both = ["executeMultiOperation", "signalWithStartWorkflowExecution"];
  const sent = await sendGuidance(losingAnswers(services, both), row, {
    id: undefined,
    text: "use tabs",
    attachments: [],
  });
  expect(sent).toMatchObject({ queued: true });
  await session.result();
  const silent = losingAnswers(services, both, [DESCRIBE, "getWorkflowExecutionHistory"]);
  const failure: unknown = await sendGuidance(silent, row, {
    id: undefined,
    text: "use spaces",
    attachments: [],
  }).catch((error: unknown) => error);
  expect(failure).toMatchObject(SILENT);
  const id = /--id (\S+)/.exec((failure as { fix: string }).fix)?.[1];
  await sendGuidance(services, row, { id, text: "use spaces", attachments: [] });
  await eventually("it is answered", () => timesAsked(session.model, ["use spaces"])[0] === 1);
  await agent.client.workflow.getHandle(session.id).result();
  expect(timesAsked(session.model, ["use tabs", "use spaces"])).toEqual([1, 1]);
});

it("a fork whose answer is lost has begun; the same order adopts it, another one does not", async () => {
  const like = await ended();
  const services = clientServices(agent);
  const row = await sessionRow(agent, like.id);
  const made = agent.adopt(newId("fork"), like);
  const fork = { fromStep: undefined, message: "Go on.", id: made.id };
  await expect(forkSession(losingAnswers(services, [START], [DESCRIBE]), row, fork)).rejects.toMatchObject(
    SILENT,
  );
  expect(await forkSession(services, row, fork)).toBe(made.id);
  await made.result();
  expect(timesAsked(made.model, ["Go on."])).toEqual([1]);
  await expect(forkSession(services, row, { ...fork, message: "Else." })).rejects.toMatchObject({
    exitCode: 5,
  });
  const other = await ended();
  await expect(forkSession(services, await sessionRow(agent, other.id), fork)).rejects.toMatchObject({
    exitCode: 5,
  });
  const second = agent.adopt(newId("fork"), like);
  expect(await forkSession(losingAnswers(services, [START]), row, { ...fork, id: second.id })).toBe(
    second.id,
  );
  await second.result();
});

it("a retry whose answer is lost has gone back, once", async () => {
  const session = await ended();
  const services = clientServices(agent);
  const row = await sessionRow(agent, session.id);
  const lossy = losingAnswers(services, ["resetWorkflowExecution"]);
  const retried = await retrySession(lossy, row, { fromStep: 1, dropMessages: false });
  const now = agent.client.workflow.getHandle(session.id);
  expect((await now.describe()).runId).toBe(retried.runId);
  expect(await now.result()).toMatchObject({ result: "Done again." });
});

it("a batch whose answer is lost runs; the same batch attaches to it", async () => {
  const services = clientServices(agent);
  const name = newId("batch");
  const start = order(undefined, "Never.");
  const items = [{ id: "a", ordinal: 1, digest: "d", start }];
  const batch = { name, items, concurrency: 1, stopAfter: undefined, maxCostUsd: undefined } as never;
  const elsewhere = { ...services, taskQueue: newId("nobody") };
  onTestFinished(async () => {
    await agent.client.workflow.getHandle(batchWorkflowId(name)).terminate();
  });
  expect(await startBatch(losingAnswers(elsewhere, [START]), batch)).toMatchObject({
    attached: false,
    begun: 1,
  });
  expect(await startBatch(elsewhere, batch)).toMatchObject({ attached: true });
});

it("a schedule whose answer is lost is adopted by the same order; without a row it only pauses", async () => {
  const services = { ...clientServices(agent), taskQueue: newId("nobody") };
  const name = newId("schedule");
  onTestFinished(() => deleteSchedule(services, name).catch(() => undefined));
  const schedule = {
    name,
    cron: "0 6 1 1 *",
    timeZone: undefined,
    overlap: "skip" as const,
    task: "Never.",
    config: runConfig(),
  };
  const silent = losingAnswers(services, ["createSchedule"], ["describeSchedule"]);
  await expect(makeSchedule(silent, schedule)).rejects.toMatchObject(SILENT);
  expect(await makeSchedule(services, schedule)).toHaveLength(3);
  expect(await makeSchedule(services, schedule)).toHaveLength(3);
  await expect(makeSchedule(services, { ...schedule, task: "Else." })).rejects.toMatchObject({ exitCode: 5 });
  await removeSchedule(services.store.db, name);
  await pauseSchedule(services, name, true);
  const listed = await eventually("it is listed", async () =>
    (await readSchedules(services)).find((found) => found.name === name),
  );
  expect(listed).toMatchObject({ state: "unrecorded" });
  for (const refused of [() => pauseSchedule(services, name, false), () => triggerSchedule(services, name)])
    await expect(refused()).rejects.toMatchObject({
      exitCode: 5,
      fix: expect.stringContaining("Create it again"),
    });
});
