/** Waits whose worker dies, and waits that a person goes back before. */
import { expect, it } from "vitest";
import { findResetPoint } from "../../client/sessions/retry-session.ts";
import { checkSession } from "../support/checker/check-session.ts";
import { startKillableSession } from "../support/killable-session.ts";
import { call, scriptedModel } from "../support/scripted-model.ts";
import { resultTexts } from "../support/stored.ts";
import { useDatabase } from "../support/test-database.ts";

const database = useDatabase(5);
const wait = (args: object) => call("wait", { reason: "the deploy", ...args });
const offline = { config: { sandbox: { network: "none" as const } } };

it("ends at the time that was fixed when it began, though no worker ran in between", async () => {
  const script = scriptedModel()
    .answers(wait({ seconds: 12 }))
    .says("Done.");
  const session = await startKillableSession(database, script, offline);
  const first = await session.startWorker();
  const started = await session.until("wait:started");
  await first.kill();
  await session.startWorker();
  expect(await session.handle.result()).toMatchObject({ status: "completed", result: "Done." });
  const ended = await session.until("wait:ended");
  const lastedMs = Date.parse(String(ended.at)) - Date.parse(String(started.at));
  expect(lastedMs).toBeGreaterThan(11_000);
  expect(ended.data.how).toBe("time");
  expect((await session.events()).filter(({ type }) => type === "wait:started")).toHaveLength(1);
  expect(await resultTexts(database.store, session.id)).toEqual([
    expect.stringMatching(/^Waited \d+(\.\d)? s: the time is over\./),
  ]);
  await checkSession(session.services, session);
}, 120_000);

it("ends at once, and says how long it was, if its time was over before a worker came back", async () => {
  const script = scriptedModel()
    .answers(wait({ seconds: 5 }))
    .says("Done.");
  const session = await startKillableSession(database, script, offline);
  const first = await session.startWorker();
  const started = await session.until("wait:started");
  await first.kill();
  await expect
    .poll(() => Date.now() - Date.parse(String(started.at)), { timeout: 30_000, interval: 200 })
    .toBeGreaterThan(9_000);
  await session.startWorker();
  expect(await session.handle.result()).toMatchObject({ status: "completed" });
  const [text = ""] = await resultTexts(database.store, session.id);
  expect(Number(/^Waited (\d+)/.exec(text)?.[1])).toBeGreaterThanOrEqual(9);
}, 120_000);

it("for a command is told its end once after its worker was killed", async () => {
  const script = scriptedModel()
    .answers(call("bash", { command: "sleep 6; echo finished", background: true }))
    .answers(wait({ process: "s1c0", seconds: 60 }))
    .says("Done.");
  const session = await startKillableSession(database, script, offline);
  const first = await session.startWorker();
  await session.until("wait:started");
  await first.kill();
  await session.startWorker();
  expect(await session.handle.result()).toMatchObject({ status: "completed" });
  const texts = await resultTexts(database.store, session.id);
  expect(texts.at(-1)).toMatch(/^Waited .* of 1 min: .* ended with exit code 0/);
  const told = JSON.stringify(session.model.requests.at(-1)).split("finished").length - 1;
  expect(told).toBeGreaterThan(0);
  expect((await session.events()).filter(({ type }) => type === "process:ended")).toHaveLength(1);
}, 120_000);

it("a reset to before it waits anew, and one to after it does not", async () => {
  const script = scriptedModel()
    .answers(wait({ seconds: 5 }))
    .answers(call("bash", { command: "echo after" }))
    .says("Done.")
    .answers(call("bash", { command: "echo again" }))
    .says("Done again.");
  const session = await startKillableSession(database, script, offline);
  await session.startWorker();
  const { runId } = await session.handle.describe();
  expect(await session.handle.result()).toMatchObject({ result: "Done." });
  const reset = await findResetPoint(session.services.client, session.id, [runId], 2);
  if (reset.kind !== "found") throw new Error("No point to reset to.");
  const { workflowService } = session.services.client;
  await workflowService.resetWorkflowExecution({
    namespace: "default",
    workflowExecution: { workflowId: session.id, runId: reset.point.runId },
    workflowTaskFinishEventId: reset.point.taskFinishedEventId,
    requestId: `reset-${session.id}`,
    reason: "test",
  });
  expect(await session.services.client.workflow.getHandle(session.id).result()).toMatchObject({
    result: "Done again.",
  });
  expect((await session.events()).filter(({ type }) => type === "wait:started")).toHaveLength(1);
}, 120_000);
