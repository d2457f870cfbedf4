/** Two workers on one queue: one dies in the middle of a step, the other takes the step over at once. */
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { readEvents } from "../../activities/store/events.ts";
import { checkSession } from "../support/checker/check-session.ts";
import { eventually } from "../support/eventually.ts";
import { startKillableSession, type KillableSession } from "../support/killable-session.ts";
import { scriptedModel, text, type ModelScript } from "../support/scripted-model.ts";
import { answersOf, callRows, resultTexts } from "../support/stored.ts";
import { createTestDatabase, type TestDatabase } from "../support/test-database.ts";
import type { WorkerProcess } from "../support/worker-process.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase(20);
});
afterAll(() => database.drop());

/** Two workers serve it; `busy` is the one that has the step. */
async function startWithTwo(script: ModelScript) {
  const session = await startKillableSession(database, script);
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
