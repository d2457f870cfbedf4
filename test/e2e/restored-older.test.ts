/** Postgres is restored from a backup that is older than Temporal: what is missing is said, and the run goes on soundly. */
import { expect, it } from "vitest";
import { SESSION_LABEL } from "../../activities/sandbox/docker/profile.ts";
import { findSessionRow } from "../../activities/store/reading.ts";
import { sendAnswer } from "../../client/sessions/send-answer.ts";
import { createQuestionLook } from "../../worker/reaper.ts";
import { endedSession } from "../../worker/session-end.ts";
import { useAgent, type RunningSession } from "../support/agent-harness.ts";
import { checkSession } from "../support/checker/check-session.ts";
import { clientServices } from "../support/client-services.ts";
import { eventually } from "../support/eventually.ts";
import { inContainer, touch } from "../support/in-container.ts";
import { questionRows, untilWaiting } from "../support/questions.ts";
import { answeredSteps, expectSaid, gate, marks, startCopied } from "../support/restored.ts";
import { call, scriptedModel, text } from "../support/scripted-model.ts";
import { resultTexts } from "../support/stored.ts";

const agent = useAgent();

/** Waits until the last command runs. @returns what lets it go on */
async function untilStarted({ id }: RunningSession): Promise<() => Promise<void>> {
  const sandbox = () => agent.docker.listContainers({ filters: { label: [`${SESSION_LABEL}=${id}`] } });
  const found = await eventually("there is a sandbox", async () => (await sandbox())[0]);
  const container = agent.docker.getContainer(found.Id);
  const started = async () => (await inContainer(container, "grep -c 5b n.marks")).trim() === "1";
  await eventually("the command runs", started, 60_000);
  return () => touch(container, "/workspace/go");
}

it("while the model answers: that answer is not stored behind the gap, and the next one is", async () => {
  const late = gate({ parts: [text("It belongs to rows that are gone.")] });
  const { session, older } = await startCopied(agent, { count: 5, copied: 3 }, (script) =>
    script.replies(late.turn).says("Done."),
  );
  await late.asked;
  await (await older).restore();
  late.open();
  expect(await session.result()).toMatchObject({ status: "completed", result: "Done.", steps: 6 });
  await expectSaid(agent, session, 3, 5);
  expect(await answeredSteps(agent, session)).toEqual([1, 2, 6]);
  await checkSession(agent, session, { kills: 4 });
});

it("while tools run: their step is missing as well, nothing runs twice, and the run goes on", async () => {
  const { session, older } = await startCopied(agent, { count: 4, copied: 2 }, (script) =>
    script
      .answers(
        call("bash", { command: "echo 5 >> n.marks" }),
        call("bash", { command: "echo 5b >> n.marks; until test -e go; do sleep 0.1; done" }),
      )
      .says("Done."),
  );
  const letGo = await untilStarted(session);
  await (await older).restore();
  await letGo();
  expect(await session.result()).toMatchObject({ status: "completed", result: "Done.", steps: 6 });
  await expectSaid(agent, session, 2, 5);
  expect(await answeredSteps(agent, session)).toEqual([1, 6]);
  await checkSession(agent, session, { kills: 5 });
});

it("of one step's results: the calls are told as not known, not as never started", async () => {
  const late = gate({ parts: [text("Done.")] });
  const session = await agent.start(
    scriptedModel().replies(marks(1)).replies(marks(2)).replies(late.turn).says("Done again."),
  );
  session.until("llm:tool-call", ({ step }) => step === 2).catch(() => undefined);
  await late.asked;
  const { pool } = agent.database.store;
  // The copy is of the moment between the answer and its results.
  await pool.query(`delete from stored_messages where session_id = $1 and step = 2 and role = 'tool'`, [
    session.id,
  ]);
  await pool.query(
    `update tool_calls set status = 'pending', fence = 0, finished_at = null, started_at = null where session_id = $1 and step = 2`,
    [session.id],
  );
  await pool.query(`delete from events where session_id = $1 and step = 2 and type = 'llm:tool-result'`, [
    session.id,
  ]);
  late.open();
  expect(await session.result()).toMatchObject({ status: "completed", result: "Done again." });
  expect(await session.dataOf("record:missing")).toEqual([{ from: 2, to: 2, calls: 1 }]);
  expect((await resultTexts(agent.database.store, session.id)).at(-1)).toMatch(
    /^The result of this call is missing/,
  );
  await checkSession(agent, session, { kills: 1 });
});

const WHICH = { question: "npm or pnpm?", options: ["npm", "pnpm"] };

it("while it waits for an answer whose row alone is missing: `answer` has it asked again", async () => {
  const { session } = await startCopied(agent, { count: 1, copied: 1 }, (script) =>
    script.calls("ask_user", WHICH).says("Done."),
  );
  await untilWaiting(agent.database.store, session);
  const { pool } = agent.database.store;
  await pool.query("delete from questions where session_id = $1", [session.id]);
  await pool.query("delete from events where session_id = $1 and type = 'question:asked'", [session.id]);
  const services = clientServices(agent);
  expect(await sendAnswer(services, session.id, { option: 2 })).toMatchObject({
    question: "s2c0",
    acknowledged: true,
  });
  expect(await session.result()).toMatchObject({ result: "Done." });
  expect((await resultTexts(agent.database.store, session.id)).at(-1)).toBe("The person answered: pnpm");
  expect(await questionRows(agent.database.store, session)).toMatchObject([
    { id: "s2c0", status: "answered" },
  ]);
  await checkSession(agent, session);
});

it("while it waits for an answer whose row alone is missing: the Web UI's answer counts too", async () => {
  const { session } = await startCopied(agent, { count: 1, copied: 1 }, (script) =>
    script.calls("ask_user", WHICH).says("Done."),
  );
  await untilWaiting(agent.database.store, session);
  await agent.database.store.pool.query("delete from questions where session_id = $1", [session.id]);
  await session.handle.signal("answer", "npm");
  expect(await session.result()).toMatchObject({ result: "Done." });
  expect((await resultTexts(agent.database.store, session.id)).at(-1)).toBe("The person answered: npm");
});

it("while it waits for an answer, without its step: the clean-up finds it and tells the model", async () => {
  const { session, older } = await startCopied(agent, { count: 3, copied: 2 }, (script) =>
    script.calls("ask_user", WHICH).says("Done."),
  );
  await untilWaiting(agent.database.store, session);
  await (await older).restore();
  const { store } = agent.database;
  // The backup is older than a minute.
  await store.pool.query("update events set at = at - interval '5 minutes' where session_id = $1", [
    session.id,
  ]);
  const warned: unknown[] = [];
  const logger = { warn: (facts: unknown) => void warned.push(facts) } as never;
  const look = createQuestionLook();
  await eventually("the list has the session", async () => {
    await look({ client: agent.client, store, logger });
    return warned.some((facts) => (facts as { session: string }).session === session.id);
  });
  expect(await session.result()).toMatchObject({ result: "Done.", steps: 5 });
  await expectSaid(agent, session, 2, 4);
  await checkSession(agent, session, { kills: 5 });
});

it("between turns, older than its run's end: the clean-up says so, and a message continues it", async () => {
  const { session, older } = await startCopied(agent, { count: 3, copied: 2 }, (script) =>
    script.says("The first task is done.").says("Gone on."),
  );
  await session.result();
  await (await older).restore();
  const { store } = agent.database;
  const ended = await endedSession({ store, client: agent.client, taskQueue: agent.taskQueue }, session.id);
  expect(ended).toMatchObject({ id: session.id });
  expect(await findSessionRow(store.db, session.id)).toMatchObject({
    status: "completed",
    result: "The first task is done.",
  });
  const again = await session.resume("Go on.", "m-2");
  expect(await again.result()).toMatchObject({ result: "Gone on." });
  await expectSaid(agent, session, 2, 4);
  expect(await answeredSteps(agent, session)).toEqual([1, 5]);
  await checkSession(agent, session, { kills: 5 });
});

it("between turns, by whole runs: the next run says so, and people's messages are read again", async () => {
  const { session, older } = await startCopied(agent, { count: 2, copied: 2 }, (script) =>
    script.says("The first task is done.").says("The second is done.").says("The third is done."),
  );
  await session.result();
  const second = await session.resume("Now the second task.", "m-2");
  await second.result();
  await (await older).restore();
  const third = await session.resume("Now the third task.", "m-3");
  expect(await third.result()).toMatchObject({ result: "The third is done." });
  await expectSaid(agent, session, 2, 4);
  const dequeued = await session.dataOf("message:dequeued");
  expect(dequeued.flatMap(({ ids }) => ids)).toEqual(["m-2", "m-3"]);
  await checkSession(agent, session, { kills: 6 });
});

it("at its end: a session is not completed without the answer that completed it", async () => {
  const { session, older } = await startCopied(agent, { count: 2, copied: 2 }, (script) =>
    script.says("The answer that goes missing.").says("Gone on."),
  );
  const { store } = agent.database;
  const copy = await older;
  // After the answer, before the end is stored.
  await session.until("llm:response", ({ step }) => step === 3);
  await copy.restore();
  await expect(session.result()).rejects.toThrow();
  expect(await findSessionRow(store.db, session.id)).toMatchObject({
    status: "failed",
    error: { type: "RecordMissing" },
  });
  const again = await session.resume("Go on.", "m-2");
  expect(await again.result()).toMatchObject({ result: "Gone on." });
  await expectSaid(agent, session, 2, 3);
});

it("without the session's row: the run fails with what was kept, and the sandbox stays", async () => {
  const late = gate({ parts: [call("bash", { command: "true" })] });
  const { session } = await startCopied(agent, { count: 2, copied: 2 }, (script) =>
    script.replies(late.turn),
  );
  await late.asked;
  const { pool } = agent.database.store;
  for (const table of ["runs", "cursors"])
    await pool.query(`delete from ${table} where session_id = $1`, [session.id]);
  await pool.query("delete from sessions where id = $1", [session.id]);
  late.open();
  const failure = await session.result().catch((error: unknown) => error);
  expect(String((failure as { cause?: Error }).cause?.message)).toMatch(
    /Restore a newer backup, and continue with: longhaul say/,
  );
  const left = await agent.docker.listContainers({ filters: { label: [`${SESSION_LABEL}=${session.id}`] } });
  expect(left).toHaveLength(1);
});
