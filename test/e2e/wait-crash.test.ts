/** Waits whose worker dies, and waits that a person goes back before. */
import { expect, it } from "vitest";
import { checkSession } from "../support/checker/check-session.ts";
import { startKillableSession } from "../support/killable-session.ts";
import { resetToStep } from "../support/reset-run.ts";
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

it("a reset to after it does not wait again", async () => {
  const script = scriptedModel()
    .answers(wait({ seconds: 5 }))
    .answers(call("bash", { command: "echo after" }))
    .says("Done.")
    .answers(call("bash", { command: "echo again" }))
    .says("Done again.");
  const session = await startKillableSession(database, script, offline);
  await session.startWorker();
  expect(await session.handle.result()).toMatchObject({ result: "Done." });
  await resetToStep(session.services.client, session.id, 2);
  expect(await session.services.client.workflow.getHandle(session.id).result()).toMatchObject({
    result: "Done again.",
  });
  expect((await session.events()).filter(({ type }) => type === "wait:started")).toHaveLength(1);
}, 120_000);

it("ends once, by the first of all that came while no worker ran, and loses none of them", async () => {
  const later = (question: string) => call("ask_user", { question, block: false });
  const script = scriptedModel()
    .answers(
      later("Which licence?"),
      later("Which port?"),
      call("bash", { command: "sleep 8; exit 5", background: true }),
    )
    .answers(wait({ process: "s1c2", seconds: 10 }))
    .answers(call("bash", { command: "sleep 1" }))
    .says("Done.");
  const session = await startKillableSession(database, script, offline);
  const first = await session.startWorker();
  const started = await session.until("wait:started");
  await first.kill();
  await session.handle.signal("answer", { question: "s1c0", text: "MIT" });
  await session.handle.signal("answer", { question: "s1c0", text: "GPL" });
  await session.handle.signal("answer", { question: "s1c1", text: "8080" });
  await expect
    .poll(() => Date.now() - Date.parse(String(started.at)), { timeout: 30_000, interval: 200 })
    .toBeGreaterThan(11_000);
  await session.handle.signal("guidance", { id: "m1", text: "Hurry." });
  await session.startWorker();
  expect(await session.handle.result()).toMatchObject({ status: "completed", result: "Done." });
  const texts = await resultTexts(database.store, session.id);
  expect(texts[3]).toMatch(/^Waited .* of 10 s: a person wrote a message, which follows\.$/);
  const events = await session.events();
  const ends = events.filter(({ type }) => type === "wait:ended");
  expect(ends.map(({ data }) => data)).toMatchObject([{ how: "message" }]);
  const last = JSON.stringify(session.model.requests.at(-1)?.items);
  for (const told of ["Hurry.", "MIT", "8080", "ended with exit code 5"])
    expect(last.split(told).length - 1, told).toBe(1);
  expect(last).not.toContain("GPL");
  await checkSession(session.services, session);
}, 120_000);

it("a reset to before it waits anew", async () => {
  const script = scriptedModel()
    .answers(wait({ seconds: 5 }))
    .says("Done.")
    .answers(wait({ seconds: 6 }))
    .says("Done again.");
  const session = await startKillableSession(database, script, offline);
  await session.startWorker();
  expect(await session.handle.result()).toMatchObject({ result: "Done." });
  await resetToStep(session.services.client, session.id, 1);
  expect(await session.services.client.workflow.getHandle(session.id).result()).toMatchObject({
    result: "Done again.",
  });
  const events = await session.events();
  expect(events.filter(({ type }) => type === "wait:started")).toHaveLength(2);
  const lasted = events.flatMap(({ type, data }) => (type === "wait:ended" ? [data as { ms: number }] : []));
  expect(lasted).toHaveLength(2);
  expect(lasted[0]?.ms).toBeGreaterThanOrEqual(5_000);
  expect(lasted[1]?.ms).toBeGreaterThanOrEqual(6_000);
}, 120_000);

it("lasts as long as it was asked for, though its worker's clock is ten minutes ahead", async () => {
  const ahead = `const { now } = Date; Date.now = () => now() + 600000;`;
  const environment = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(ahead)}` };
  const script = scriptedModel()
    .answers(wait({ seconds: 6 }))
    .says("Done.");
  const session = await startKillableSession(database, script, { ...offline, environment });
  await session.startWorker();
  expect(await session.handle.result()).toMatchObject({ status: "completed" });
  expect((await resultTexts(database.store, session.id))[0]).toMatch(
    /^Waited \d+(\.\d)? s: the time is over\.$/,
  );
  const [started, ended] = [await session.until("wait:started"), await session.until("wait:ended")];
  const lastedMs = Date.parse(String(ended.at)) - Date.parse(String(started.at));
  expect(lastedMs).toBeGreaterThan(5_000);
  expect(lastedMs).toBeLessThan(60_000);
  const aheadMs = Date.parse(String(started.data.until)) - Date.parse(String(started.at));
  expect(Math.abs(aheadMs)).toBeLessThan(60_000);
}, 120_000);
