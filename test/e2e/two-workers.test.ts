/**
 * Two workers on one queue: one dies or is stopped in the middle of a step, the other takes the step over, and what the
 * first still writes afterwards is refused.
 */
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { readEvents } from "../../activities/store/events.ts";
import { checkSession } from "../support/checker/check-session.ts";
import { eventually } from "../support/eventually.ts";
import { startKillableSession, type KillableSession } from "../support/killable-session.ts";
import { call, scriptedModel, text, type ModelScript } from "../support/scripted-model.ts";
import { answersOf, callRows, resultTexts, transcriptOf } from "../support/stored.ts";
import { createTestDatabase, type TestDatabase } from "../support/test-database.ts";
import type { WorkerProcess } from "../support/worker-process.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase(20);
});
afterAll(() => database.drop());

/** Two workers serve it; `busy` is the one that has the step. */
async function startWithTwo(script: ModelScript, environment: Record<string, string> = {}) {
  const session = await startKillableSession(database, script, { environment });
  onTestFinished(() => session.close());
  const workers = await Promise.all([session.startWorker(), session.startWorker()]);
  return { session, workers };
}

/** Which of the workers has the activity of that type now. */
async function busyWith(session: KillableSession, workers: readonly WorkerProcess[], type: string) {
  return eventually(
    `${type} is under way`,
    async () => {
      const { raw } = await session.handle.describe();
      const pending = raw.pendingActivities?.find((activity) => activity.activityType?.name === type);
      const identity = pending?.lastWorkerIdentity ?? "";
      return pending?.state === 2 ? workers.find(({ pid }) => identity.startsWith(`${pid}.`)) : undefined;
    },
    60_000,
  );
}

/** Ends the command that waits for it. */
async function letGo({ box }: KillableSession): Promise<void> {
  const touch = await box.exec({ Cmd: ["touch", "/workspace/go"], User: "1000" });
  await touch.start({});
}

const eventsOf = (session: KillableSession) => readEvents(database.store.db, session.id, 0, 10_000);

describe("a worker that is killed while another stands by", () => {
  it("loses the step to it at once: nobody waits for a heartbeat that stays away [R21]", async () => {
    const script = scriptedModel()
      .answers(text("This half was never finished"), { type: "hang" })
      .calls("bash", { command: "echo one >> n.txt; until [ -e go ]; do sleep 0.2; done" })
      .calls("bash", { command: "cat n.txt" })
      .says("Done.");
    const { session, workers } = await startWithTwo(script);
    await eventually(
      "the first words arrive",
      async () => (await eventsOf(session)).some((event) => event.type === "llm:chunk"),
      60_000,
    );
    const first = await busyWith(session, workers, "modelStep");
    await first.kill();
    await eventually("the step is asked for again", () => session.model.log.length === 2, 60_000);
    await eventually(
      "the next step's call runs",
      async () => (await callRows(database.store, session.id, "running")).length === 1,
      60_000,
    );
    // How fast it is, is the benchmark's affair; that nobody waited for a heartbeat is in the history.
    const { events } = await session.handle.fetchHistory();
    const again = (events ?? [])
      .map((event) => event.activityTaskStartedEventAttributes)
      .find((started) => started?.attempt === 2);
    expect(again?.lastFailure?.applicationFailureInfo?.type).toBe("WorkerLost");
    // Of a command, too: the next worker follows the one that runs.
    await session.startWorker();
    await (await busyWith(session, workers, "runTool")).kill();
    await eventually(
      "another worker has the call",
      async () => (await callRows(database.store, session.id))[0]?.fence === 2,
      60_000,
    );
    await letGo(session);
    expect(await session.handle.result()).toMatchObject({ status: "completed" });
    expect((await resultTexts(database.store, session.id)).at(-1)).toBe("one");
    expect(await answersOf(database.store, session.id)).toHaveLength(3);
    await checkSession(session.place, session, { kills: 2 });
  });
});

describe("a worker that is stopped past its heartbeat, and goes on when another has finished the step", () => {
  const quick = { LONGHAUL_HEARTBEAT_TIMEOUT_MS: "3000" };

  it("has its answer refused: the transcript has one, and watchers see no words of the late one [R20]", async () => {
    const late = Promise.withResolvers<void>();
    const script = scriptedModel()
      .replies(async () => {
        await late.promise;
        return { parts: [text("The late answer.")] };
      })
      .says("The answer that counts.");
    const { session, workers } = await startWithTwo(script, quick);
    const first = await busyWith(session, workers, "modelStep");
    await eventually("the model is asked", () => session.model.log.length === 1, 60_000);
    first.stop();
    await session.handle.result();
    late.resolve();
    const before = await transcriptOf(database.store, session.id);
    first.resume();
    await eventually(
      "the late worker is alive again",
      async () => (await first.terminate()) !== undefined,
      60_000,
    );
    expect(await transcriptOf(database.store, session.id)).toEqual(before);
    const answers = await answersOf(database.store, session.id);
    expect(JSON.stringify(answers.map((row) => row.content))).toContain("The answer that counts.");
    expect(answers).toHaveLength(1);
    expect(JSON.stringify(await eventsOf(session))).not.toContain("The late answer.");
    await checkSession(session.place, session, { kills: 1 });
  });

  it("runs no command again and stores no second result [R20]", async () => {
    const script = scriptedModel()
      .calls("bash", { command: "echo line >> n.txt; until [ -e go ]; do sleep 0.2; done; echo done" })
      .calls("bash", { command: "cat n.txt" })
      .says("Done.");
    const { session, workers } = await startWithTwo(script, quick);
    await eventually(
      "the command runs",
      async () => (await callRows(database.store, session.id, "running")).length === 1,
      60_000,
    );
    const first = await busyWith(session, workers, "runTool");
    first.stop();
    await eventually(
      "the other worker has the call",
      async () => (await callRows(database.store, session.id))[0]?.fence === 2,
      60_000,
    );
    // Both follow the same command from here on; the first hears its end only when it goes on.
    await letGo(session);
    await eventually(
      "the result is stored",
      async () => (await callRows(database.store, session.id, "completed")).length >= 1,
      60_000,
    );
    first.resume();
    expect(await session.handle.result()).toMatchObject({ status: "completed" });
    const [waited, counted] = await resultTexts(database.store, session.id);
    expect(waited).toMatch(/^done\b/);
    expect(counted).toBe("line");
    const rows = await transcriptOf(database.store, session.id);
    expect(rows.filter((row) => row.step === 1 && row.slot === "tool:0")).toHaveLength(1);
    expect(session.model.log).toHaveLength(3);
    await checkSession(session.place, session);
  });
});

it("several sessions on two workers, one of which is killed: each goes through its steps once, in order [R21]", async () => {
  const STEPS = 4;
  const script = scriptedModel().forever((request) => {
    const words = request.items.map((item) => JSON.stringify(item));
    const name = /session-\d/.exec(words.join(" "))?.[0] ?? "";
    const step = words.filter((item) => item.includes("call_output") || item.includes('"result"')).length + 1;
    return step > STEPS
      ? { parts: [text(`${name} is done.`)] }
      : { parts: [call("bash", { command: `echo ${name}.${step} >> n.txt; cat n.txt` })] };
  });
  const leading = await startKillableSession(database, script, { task: "You are session-0." });
  onTestFinished(() => leading.close());
  const others = await Promise.all(
    [1, 2, 3].map((place) =>
      startKillableSession(database, script, { task: `You are session-${place}.`, beside: leading }),
    ),
  );
  onTestFinished(async () => void (await Promise.all(others.map((session) => session.close()))));
  const [first] = [await leading.startWorker(), await leading.startWorker()];
  const sessions = [leading, ...others];
  await eventually(
    "calls have begun",
    async () =>
      (await Promise.all(sessions.map(({ id }) => callRows(database.store, id)))).flat().length >= 4,
    120_000,
  );
  await first.kill();
  await Promise.all(sessions.map(({ handle }) => handle.result()));
  for (const [place, { id, place: at }] of sessions.entries()) {
    const expected = Array.from({ length: STEPS }, (_, step) => `session-${place}.${step + 1}`).join("\n");
    expect((await resultTexts(database.store, id)).at(-1)).toBe(expected);
    expect(await answersOf(database.store, id)).toHaveLength(STEPS + 1);
    await checkSession(at, id);
  }
});
