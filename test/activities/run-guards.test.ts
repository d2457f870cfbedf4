/** What activities write is their run's to write, and writers of one session do not wait for each other forever. */
import { eq, type SQL } from "drizzle-orm";
import pg from "pg";
import { expect, it, onTestFinished } from "vitest";
import type { SessionRuns } from "../../activities/contract/session-runs.ts";
import { createActivities } from "../../activities/index.ts";
import { enterReading } from "../../activities/runtime/enter-session.ts";
import { deliverGuidance } from "../../activities/step/guidance.ts";
import { waitingGuidance } from "../../activities/store/guidance.ts";
import { loadView } from "../../activities/store/load-view.ts";
import { runInCharge, takeOver } from "../../activities/store/runs.ts";
import { type runs, sandboxes, toolCalls } from "../../activities/store/schema/index.ts";
import { findSession } from "../../activities/store/sessions.ts";
import { compactingSession } from "../support/compacting-session.ts";
import { summaryText, work } from "../support/compacting.ts";
import { guidance, openDirectAgent } from "../support/direct-agent.ts";
import { eventually } from "../support/eventually.ts";
import { loneRun, silentAnnouncements } from "../support/lone-deps.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { callRows, resultTexts, transcriptOf } from "../support/stored.ts";
import { useDatabase } from "../support/test-database.ts";

const database = useDatabase(8);

const start = (script = scriptedModel().says("Done.")) => openDirectAgent(database, script);

it("a run that another has taken over from neither delivers nor stores what was said", async () => {
  const agent = await start();
  const before = await findSession(database.store.db, agent.id);
  agent.runId = "run-2";
  await agent.perform("openSession", { chain: agent.runId });
  agent.runId = "run-1";
  const superseded = { type: "Superseded" };
  await expect(agent.say(guidance("late"))).rejects.toMatchObject(superseded);
  const delivery = deliverGuidance(
    agent.deps,
    { runId: "run-1" },
    { ...(before ?? expect.fail("The session is there.")), hasWaiting: true },
    { step: 1, roomTokens: 1_000 },
  );
  await expect(delivery).rejects.toMatchObject(superseded);
  expect(await waitingGuidance(database.store.db, agent.id, 1)).toEqual([]);
  expect((await transcriptOf(database.store, agent.id)).map((row) => row.kind)).toEqual(["task"]);
});

it("two activities of a new run may enter at once; neither is taken for an older run's", async () => {
  const agent = await start();
  const { store, sessionRuns } = agent.deps;
  const run = { sessionId: agent.id, runId: "run-2" };
  const at = { step: 1, phase: "model" } as const;
  const enter = (db: typeof store.db) => takeOver({ store: { db }, sessionRuns }, run, at);
  let operations = 0;
  const claimBeforeSecond = async (db: typeof store.db) => {
    operations += 1;
    if (operations === 2) await enter(db);
  };
  // The first activity is through between what the second one reads and what it does next.
  const between = new Proxy(store.db, {
    get(db, key) {
      const value: unknown = Reflect.get(db, key, db);
      if (typeof value !== "function") return value;
      if (key === "transaction")
        return async (body: Parameters<typeof db.transaction>[0]) => {
          await claimBeforeSecond(db);
          return db.transaction(body);
        };
      if (key !== "select") return value.bind(db);
      return (columns: { runId: typeof runs.runId }) => ({
        from: (table: typeof runs) => ({
          where: async (condition: SQL) => {
            await claimBeforeSecond(db);
            return db.select(columns).from(table).where(condition);
          },
        }),
      });
    },
  });
  expect(await enter(between)).toEqual({ epoch: 1, wentBack: false });
  expect(operations).toBeGreaterThanOrEqual(2);
});

it("a run that never opened its session leaves it as it is, whatever it is closed with", async () => {
  const agent = await start();
  await agent.step(1);
  await agent.perform("closeSession", { step: 1, status: "completed" });
  const rows = await transcriptOf(database.store, agent.id);
  const before = await findSession(database.store.db, agent.id);
  const events = await agent.events();
  agent.runId = "run-2";
  await agent.perform("closeSandbox", { step: 0, neverOpened: {} });
  const closed = await agent.perform("closeSession", { step: 0, status: "cancelled", neverOpened: {} });
  expect(closed).toMatchObject({ status: "cancelled" });
  expect(await transcriptOf(database.store, agent.id)).toEqual(rows);
  expect(await findSession(database.store.db, agent.id)).toEqual(before);
  expect(await agent.events()).toEqual(events);
});

it("a run that was to continue the one in charge ends its session, at the step where it stood", async () => {
  const agent = await start();
  await agent.step(1);
  agent.runId = "run-2";
  const neverOpened = { continuedFrom: "run-1" };
  await agent.perform("closeSession", { step: 0, status: "cancelled", neverOpened });
  expect(await findSession(database.store.db, agent.id)).toMatchObject({ status: "cancelled", epoch: 1 });
  const rows = await transcriptOf(database.store, agent.id);
  expect(rows.filter((row) => row.supersededEpoch !== null)).toEqual([]);
});

it("a second attempt to close the sandbox opens none, so that none seems lost", async () => {
  const agent = await start(scriptedModel().calls("bash", { command: "true" }));
  await agent.step(1);
  await agent.perform("closeSandbox", { step: 1 });
  const events = await agent.events();
  expect(events).toContain("sandbox:removed");
  await agent.perform("closeSandbox", { step: 1 }, { attempt: 2 });
  expect(await agent.events()).toEqual(events);
});

it("calls that an interrupt kept from beginning have their results before the next step asks", async () => {
  const agent = await start(scriptedModel().calls("bash", { command: "true" }).says("Done."));
  await agent.perform("modelStep", { step: 1 });
  // Asked again, as after a crash, the step leaves its calls to be run.
  await agent.perform("modelStep", { step: 1 }, { attempt: 2 });
  expect((await callRows(database.store, agent.id)).map((row) => row.status)).toEqual(["pending"]);
  await agent.say(guidance("something else"));
  await agent.perform("modelStep", { step: 2 });
  expect((await callRows(database.store, agent.id)).map((row) => row.status)).toEqual(["interrupted"]);
  expect(await resultTexts(database.store, agent.id)).toEqual([
    "The run was stopped before this call was started.",
  ]);
});

it("a step that is answered takes no message that comes to wait: the next one does", async () => {
  const agent = await start(scriptedModel().calls("bash", { command: "true" }).says("Heard."));
  await agent.perform("modelStep", { step: 1 });
  await agent.say(guidance("mark-late", "late"));
  const again = await agent.perform("modelStep", { step: 1 }, { attempt: 2 });
  expect(again).toMatchObject({ kind: "answered", left: [{ id: "late" }] });
  await agent.perform("runTool", { step: 1, index: 0 });
  await agent.perform("modelStep", { step: 2 });
  const said = (await transcriptOf(database.store, agent.id)).filter((row) => row.kind === "guidance");
  expect(said.map((row) => row.step)).toEqual([2]);
});

it("who opens a sandbox locks the session before its sandbox, as who saves one does", async () => {
  const agent = await start();
  await agent.perform("openSandbox", { step: 1 });
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  onTestFinished(() => client.end());
  await client.query("begin");
  await client.query("select 1 from sessions where id = $1 for no key update", [agent.id]);
  // As another worker, which has not opened it.
  const other = createActivities(agent.deps);
  const opening = agent.environment().run((input: { step: number }) => other.openSandbox(input), { step: 1 });
  await eventually("the other one waits", async () => {
    const { rows } = await database.store.pool.query(
      "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
    );
    return rows.length > 0;
  });
  await client.query("set local lock_timeout = '2s'");
  await client.query("update sandboxes set saved_step = 0 where session_id = $1", [agent.id]);
  await client.query("commit");
  await opening;
  const [row] = await database.store.db.select().from(sandboxes).where(eq(sandboxes.sessionId, agent.id));
  expect(row).toMatchObject({ savedStep: 0 });
});

it("a run that goes back to a call under way begins an epoch, and the call is repeated", async () => {
  const { db } = database.store;
  const agent = await start(scriptedModel().calls("bash", { command: "true" }));
  await agent.perform("modelStep", { step: 1 });
  await db.update(toolCalls).set({ status: "running" }).where(eq(toolCalls.sessionId, agent.id));
  agent.runId = "run-2";
  await agent.perform("runTool", { step: 1, index: 0 });
  expect(await findSession(db, agent.id)).toMatchObject({ epoch: 2 });
  const calls = await callRows(database.store, agent.id);
  expect(calls.map(({ epoch, status, supersededEpoch }) => ({ epoch, status, supersededEpoch }))).toEqual([
    { epoch: 1, status: "running", supersededEpoch: 2 },
    { epoch: 2, status: "completed", supersededEpoch: null },
  ]);
});

it("a run that takes over before a round reads the view without it; one in charge reads once", async () => {
  const session = await compactingSession(database, work(30), summaryText());
  const before = (await session.view()).map(({ sequence }) => sequence);
  expect(await session.summarize()).toMatchObject({ kind: "compacted", round: 1 });
  let reads = 0;
  const read = () => {
    reads += 1;
    return loadView(database.store.db, session.id);
  };
  const [round] = await session.rounds();
  const at = { step: (round?.step ?? 0) + 1, phase: "model", round: 0 } as const;
  const enter = (runId: string) =>
    enterReading(
      { store: database.store, sessionRuns: loneRun, announcements: silentAnnouncements },
      { sessionId: session.id, runId },
      at,
      read,
    );
  const [, seen] = await enter("run-1");
  expect(reads).toBe(1);
  expect(seen.length).toBeLessThan(before.length);
  const [entered, again] = await enter("run-2");
  expect(reads).toBe(3);
  expect(entered).toMatchObject({ runId: "run-2", epoch: 2 });
  expect(again.filter(({ kind }) => kind !== "notice").map(({ sequence }) => sequence)).toEqual(before);
});

it("nothing waits while Temporal is asked about other runs; a replaced run claims nothing", async () => {
  const session = await compactingSession(database, work(3), summaryText());
  const { store } = database;
  const at = { step: 2, phase: "model" } as const;
  const [asking, answers] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let current = "run-2";
  const sessionRuns: SessionRuns = {
    ...loneRun,
    async isCurrent(_session, runId) {
      const isCurrent = current === runId;
      if (runId === "run-2" && isCurrent) asking.resolve();
      if (runId === "run-2") await answers.promise;
      return isCurrent;
    },
  };
  const late = takeOver({ store, sessionRuns }, { sessionId: session.id, runId: "run-2" }, at);
  await asking.promise;
  current = "run-3";
  const taken = await takeOver({ store, sessionRuns }, { sessionId: session.id, runId: "run-3" }, at);
  expect(taken).toMatchObject({ wentBack: true });
  answers.resolve();
  expect(await late).toBe("superseded");
  expect(await runInCharge(store.db, session.id)).toBe("run-3");
});
