/** Sandboxes that are stopped and kept between a session's runs. */
import { sql } from "drizzle-orm";
import { pino } from "pino";
import { expect, it } from "vitest";
import { sandboxes } from "../../activities/store/schema/index.ts";
import { eventually, useAgent } from "../support/agent-harness.ts";
import { readStatus } from "../../client/sessions/session-status.ts";
import { clientServices, sessionRow } from "../support/client-services.ts";
import { checkSession } from "../support/checker/check-session.ts";
import { ALL_THERE, INSTALL, installsAndLooks, LOOK } from "../support/installing.ts";
import { removeBox } from "../support/remove-box.ts";
import { untilWaiting } from "../support/questions.ts";
import { call, scriptedModel } from "../support/scripted-model.ts";
import { noticesOf, resultTexts } from "../support/stored.ts";
import { reapSandboxes } from "../../worker/reaper.ts";

const agent = useAgent();

const keeping = (keep = "3d") => ({ sandbox: { network: "none" as const, park: { keep: toMs(keep) } } });
const toMs = (keep: string) => (keep === "0" ? (0 as const) : 3 * 86_400_000);
const boxOf = (id: string) => agent.docker.getContainer(`longhaul-${id}`);
const stateOf = (id: string) =>
  boxOf(id)
    .inspect()
    .then(
      ({ State: state }) => state.Status,
      () => "gone",
    );

const reaping = () => ({
  host: agent.deps.sandboxHost,
  store: agent.database.store,
  countedSaves: agent.deps.countedSaves,
  client: agent.client,
  taskQueue: agent.taskQueue,
  logger: pino({ level: "silent" }),
});

async function firstRun(config = keeping()) {
  const session = await agent.start(installsAndLooks(), { config });
  expect(await session.result()).toMatchObject({ result: "One." });
  return session;
}

async function secondRun(session: Awaited<ReturnType<typeof firstRun>>) {
  const handle = await session.resume("Look.", "look");
  expect(await handle.result()).toMatchObject({ result: "Two." });
  return (await resultTexts(agent.database.store, session.id)).at(-1);
}

it("has what was installed after a run's end, and no process", async () => {
  const session = await firstRun();
  expect(await stateOf(session.id)).toBe("exited");
  expect((await session.dataOf("sandbox:parked"))[0]?.until).toMatch(/^\d{4}-/);
  expect(await secondRun(session)).toMatch(ALL_THERE);
  expect(await session.dataOf("sandbox:adopted")).toContainEqual(expect.objectContaining({ parked: true }));
  await checkSession(agent, session);
  await removeBox(agent.docker, session.id);
});

it("is removed as ever if nothing is to be kept, and after a cancel", async () => {
  const none = await firstRun(keeping("0"));
  expect(await stateOf(none.id)).toBe("gone");
  const script = scriptedModel().calls("bash", { command: "sleep 100" }).says("Never.");
  const cancelled = await agent.start(script, { config: keeping() });
  await eventually("the sandbox runs", async () => (await stateOf(cancelled.id)) === "running");
  await cancelled.handle.cancel();
  await expect(cancelled.result()).rejects.toThrow();
  expect(await stateOf(cancelled.id)).toBe("gone");
});

it("tells what was installed if its container is gone, and if all of it is", async () => {
  const container = await firstRun();
  await boxOf(container.id).remove({ force: true });
  expect(await secondRun(container)).toMatch(/^kept\npad\ncat: .*tool/);
  expect(await noticesOf(agent.database.store, container.id)).toContainEqual(
    expect.stringMatching(/What was installed outside \/workspace is gone.*npm install left-pad.*\(step 1\)/),
  );
  await removeBox(agent.docker, container.id);
  const all = await firstRun();
  await removeBox(agent.docker, all.id);
  expect(await secondRun(all)).toMatch(/^kept\ncat: [^]*left-pad/);
  expect(await noticesOf(agent.database.store, all.id)).toContainEqual(
    expect.stringMatching(/files are those of the last save.*node_modules.*npm install left-pad/),
  );
  await removeBox(agent.docker, all.id);
});

it("is stopped while a session waits, and started for the answer", async () => {
  const script = scriptedModel()
    .calls("bash", { command: INSTALL })
    .answers(call("ask_user", { question: "Which?" }))
    .calls("bash", { command: LOOK })
    .says("Done.");
  const questions = { mode: "ask" as const, parkAfter: 200, maxOpen: 8 };
  const session = await agent.start(script, { config: { ...keeping(), questions } });
  await untilWaiting(agent.database.store, session);
  await eventually("the sandbox is stopped", async () => (await stateOf(session.id)) === "exited");
  const [question] = await session.dataOf("question:asked");
  await session.handle.signal("answer", { id: question?.id, text: "This." });
  expect(await session.result()).toMatchObject({ result: "Done." });
  expect((await resultTexts(agent.database.store, session.id)).at(-1)).toMatch(ALL_THERE);
  expect((await noticesOf(agent.database.store, session.id)).join()).toContain(
    "what was installed are there",
  );
  await removeBox(agent.docker, session.id);
});

it("is stopped by the clean-up if its worker died before, and removed when its time is over", async () => {
  const session = await firstRun();
  await boxOf(session.id).start();
  expect(await reapSandboxes(reaping())).not.toContain(session.id);
  expect(await stateOf(session.id)).toBe("exited");
  await agent.database.store.db.update(sandboxes).set({ parkedUntil: sql`now() - interval '1 s'` });
  expect(await reapSandboxes(reaping())).toContain(session.id);
  expect(await stateOf(session.id)).toBe("gone");
  expect(await session.dataOf("sandbox:removed")).toContainEqual(
    expect.objectContaining({ why: "its time was over" }),
  );
  const { parked, unparked } = await readStatus(clientServices(agent), await sessionRow(agent, session.id));
  expect([parked, unparked]).toEqual([null, "when its time was over"]);
  expect(await secondRun(session)).toMatch(/^kept\ncat: /);
  expect(await noticesOf(agent.database.store, session.id)).toContainEqual(
    expect.stringMatching(/was removed when its time was over.*node_modules.*npm install left-pad/),
  );
  await removeBox(agent.docker, session.id);
});

it("is removed by a cancel while the session waits in a stopped one", async () => {
  const script = scriptedModel()
    .calls("bash", { command: INSTALL })
    .answers(call("ask_user", { question: "Which?" }))
    .says("Never.");
  const questions = { mode: "ask" as const, parkAfter: 200, maxOpen: 8 };
  const session = await agent.start(script, { config: { ...keeping(), questions } });
  await untilWaiting(agent.database.store, session);
  await eventually("the sandbox is stopped", async () => (await stateOf(session.id)) === "exited");
  await session.handle.cancel();
  await expect(session.result()).rejects.toThrow();
  expect(await stateOf(session.id)).toBe("gone");
  await removeBox(agent.docker, session.id);
});
