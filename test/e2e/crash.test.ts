/**
 * Workers that die. After a kill -9 another worker sees within a second that the lease is free, which is what these
 * tests wait for: they run in parallel, each with its own session, task queue and workers.
 */
import { describe, expect, it, type TestContext } from "vitest";
import { checkSession } from "../support/checker/check-session.ts";
import { eventually } from "../support/eventually.ts";
import { startKillableSession, type KillableSession } from "../support/killable-session.ts";
import { scriptedModel, text, type ModelScript } from "../support/scripted-model.ts";
import { answersOf, callRows, resultTexts, secondAttempt } from "../support/stored.ts";
import { useDatabase } from "../support/test-database.ts";
import { untilTaken } from "../support/waits.ts";
import { touch, runsIn } from "../support/in-container.ts";

const database = useDatabase(10);

/** The test's own context: tests run in parallel, and each closes its own session. */
const start = (script: ModelScript, context: Pick<TestContext, "onTestFinished">) =>
  startKillableSession(database, script, { context });

/** Runs until it is released: as long as the test needs, on any machine. */
const STANDS = "until [ -e /tmp/go ]; do sleep 0.1; done";
const MUTATING = `echo line >> n.marks; ${STANDS}; echo done`;
const mutating = () =>
  scriptedModel()
    .calls("bash", { command: MUTATING })
    .calls("bash", { command: "cat n.marks" })
    .says("Done.");

const untilItRuns = ({ sandbox }: KillableSession, words: string) =>
  eventually(`${words} runs`, () => runsIn(sandbox, words), 120_000);
const untilItStands = (session: KillableSession) => untilItRuns(session, STANDS);
const release = ({ sandbox }: KillableSession) => touch(sandbox, "/tmp/go");

describe.concurrent("a worker that is killed", () => {
  it(
    "during an answer: it is requested again, one is kept, and watchers see a retry",
    { tags: ["R2"] },
    async (context) => {
      const script = scriptedModel()
        .answers(text("This half was never finished"), { type: "hang" })
        .says("This is the whole answer.");
      const session = await start(script, context);
      const first = await session.startWorker();
      await session.until("llm:chunk");
      await first.kill();
      await session.startWorker();
      expect(await session.handle.result()).toMatchObject({ result: "This is the whole answer." });
      expect(session.model.log).toHaveLength(2);
      const answers = await answersOf(database.store, session.id);
      expect(answers).toHaveLength(1);
      expect(JSON.stringify(answers[0]?.content)).not.toContain("never finished");
      const events = await session.events();
      const begun = events.filter((event) => event.type === "step:started");
      expect(begun.map(({ step, attempt }) => [step, attempt])).toEqual([
        [1, 1],
        [1, 2],
      ]);
      expect(events.filter((event) => event.type === "llm:chunk")).toEqual([]);
      const whole = events.filter((event) => event.type === "llm:response");
      expect(whole.map(({ attempt, data }) => [attempt, (data as { content: string }).content])).toEqual([
        [2, "This is the whole answer."],
      ]);
      // The dead worker's request is listed too.
      const { bills } = await checkSession(session.services, session);
      expect(bills.map(({ status }) => status).toSorted()).toEqual(["kept", "wasted"]);
    },
  );

  it(
    "with its sandbox: the model learns that the outcome is unknown, and nothing is run again",
    { tags: ["A2"] },
    async (context) => {
      const session = await start(mutating(), context);
      const first = await session.startWorker();
      await untilItStands(session);
      await first.kill();
      await session.sandbox.remove({ force: true });
      await session.startWorker();
      expect(await session.handle.result()).toMatchObject({ status: "completed", steps: 3 });
      const rows = await callRows(database.store, session.id);
      expect(rows.map((row) => row.status)).toEqual(["unknown", "completed"]);
      // The notice about the sandbox follows the result.
      const request = JSON.stringify(session.model.requests[1]?.items);
      expect(request).toContain("not known how this command ended");
      expect(request).toContain("echo line >> n.marks");
      expect(request).toContain("It was not run again");
      // The volume outlived the sandbox: what the command did before is still there, once.
      expect((await resultTexts(database.store, session.id))[1]).toBe("line");
      expect(session.model.log).toHaveLength(3);
      await checkSession(session.services, session);
    },
  );
});

describe.concurrent("a command whose workers die", () => {
  it("is followed by one worker after the other to its true end", { tags: ["A1", "R4"] }, async (context) => {
    const command = `echo line >> n.marks; echo began; ${STANDS}; echo end`;
    const session = await start(
      scriptedModel().calls("bash", { command, timeout_seconds: 600 }).says("It came to its end."),
      context,
    );
    const first = await session.startWorker();
    await untilItStands(session);
    await first.kill();
    const second = await session.startWorker();
    await untilTaken(database.store, session.id, 2);
    await second.kill();
    await session.startWorker();
    await untilTaken(database.store, session.id, 3);
    await release(session);
    expect(await session.handle.result()).toMatchObject({ status: "completed", steps: 2 });
    const [result] = await resultTexts(database.store, session.id);
    expect(result).toMatch(/^began\nend/);
    const [row] = await callRows(database.store, session.id);
    expect(row).toMatchObject({ status: "completed", exitCode: 0, fence: 3 });
    const { marks } = await checkSession(session.services, session);
    expect(marks?.get("n.marks")).toEqual(["line"]);
  });

  it("is given to no further worker after two died within moments of claiming it", async (context) => {
    const command = "echo line >> n.marks; sleep 250";
    const session = await start(
      scriptedModel().calls("bash", { command, timeout_seconds: 300 }).says("It was never asked."),
      context,
    );
    for (const fence of [1, 2, 3]) {
      const worker = await session.startWorker();
      await untilTaken(database.store, session.id, fence);
      if (fence === 1) await untilItRuns(session, "sleep 250");
      await worker.kill();
    }
    await session.startWorker();
    await expect(session.handle.result()).rejects.toMatchObject({
      cause: { type: "PoisonedSession", message: expect.stringContaining("2 workers in a row were lost") },
    });
    const [row] = await callRows(database.store, session.id);
    expect(row).toMatchObject({ status: "unknown", fence: 3 });
    const { marks } = await checkSession(session.services, session);
    expect(marks?.get("n.marks")).toEqual(["line"]);
  });

  it("is read by a worker that starts long after its end", { tags: ["R5"] }, async (context) => {
    const command = `echo line >> n.marks; ${STANDS}; echo it ended alone; exit 3`;
    const session = await start(
      scriptedModel().calls("bash", { command }).says("It was waited for."),
      context,
    );
    const first = await session.startWorker();
    await untilItStands(session);
    await first.kill();
    await release(session);
    await eventually(
      "the command has ended without a worker",
      async () => !(await runsIn(session.sandbox, STANDS)),
      60_000,
    );
    await session.startWorker();
    expect(await session.handle.result()).toMatchObject({ status: "completed", steps: 2 });
    expect(await resultTexts(database.store, session.id)).toEqual(["it ended alone\n[exit code 3]"]);
    const [row] = await callRows(database.store, session.id);
    expect(row).toMatchObject({ status: "completed", exitCode: 3, fence: 2 });
    const { marks } = await checkSession(session.services, session);
    expect(marks?.get("n.marks")).toEqual(["line"]);
  });
});

it(
  "a worker that gets SIGTERM hands a running command over to the next one and ends with 0",
  { tags: ["A16", "R8"] },
  async (context) => {
    const session = await start(mutating(), context);
    const first = await session.startWorker();
    await untilItStands(session);
    await session.startWorker();
    const code = await first.terminate();
    expect(code, first.log()).toBe(0);
    await release(session);
    expect(await session.handle.result()).toMatchObject({ status: "completed", steps: 3 });
    const [slept, counted] = await resultTexts(database.store, session.id);
    expect(slept).toMatch(/^done\b/);
    expect(counted).toBe("line");
    const [row] = await callRows(database.store, session.id);
    expect(row).toMatchObject({ status: "completed", exitCode: 0, fence: 2 });
    // It was handed over: no heartbeat timed out.
    const taken = await secondAttempt(session.handle);
    expect(taken?.lastFailure?.message).toBeTruthy();
    expect(taken?.lastFailure?.timeoutFailureInfo).toBeFalsy();
    await checkSession(session.services, session);
  },
);
