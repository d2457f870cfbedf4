/** Questions that do not block: the work goes on, and the answer comes as a message, once. */
import { expect, it } from "vitest";
import { sendAnswer } from "../../client/sessions/send-answer.ts";
import { useAgent, type RunningSession } from "../support/agent-harness.ts";
import { call, scriptedModel } from "../support/scripted-model.ts";
import { clientServices } from "../support/client-services.ts";
import { resetToStep } from "../support/reset-run.ts";
import { resultTexts, transcriptOf } from "../support/stored.ts";

const agent = useAgent();

const ask = (question = "Which licence?", more: object = {}) =>
  call("ask_user", { question, block: false, ...more });
const wait = (question: string) => call("wait", { reason: "the licence", question });
const lastRequest = (session: RunningSession) => JSON.stringify(session.model.requests.at(-1));
/** Messages that the model got from people. */
const answersTold = async (session: RunningSession) =>
  (await transcriptOf(agent.database.store, session.id))
    .filter(({ kind }) => kind === "guidance")
    .map(({ content }) => (content as [{ text: string }])[0].text);
const statuses = async (session: RunningSession) =>
  (
    await agent.database.store.pool.query<{ id: string; status: string }>(
      "select id, status from questions where session_id = $1 order by id",
      [session.id],
    )
  ).rows.map(({ id, status }) => `${id} ${status}`);

it("a last answer with an open one waits, and the run goes on with the answer", async () => {
  const script = scriptedModel()
    .answers(ask())
    .answers(call("bash", { command: "echo work > done" }))
    .says("Done so far.")
    .says("Used MIT.");
  const session = await agent.start(script);
  await expect
    .poll(async () => (await session.handle.query<{ status: string }>("status")).status, { timeout: 20_000 })
    .toBe("waiting");
  // The same one twice, as two doors may send it.
  await session.handle.signal("answer", "MIT");
  await session.handle.signal("answer", "MIT");
  expect(await session.result()).toMatchObject({ result: "Used MIT.", steps: 4 });
  expect((await resultTexts(agent.database.store, session.id))[0]).toMatch(/^Asked: question s1c0\. Work on/);
  expect(await answersTold(session)).toEqual(["Answer to your question s1c0 (Which licence?): MIT"]);
  expect(await statuses(session)).toEqual(["s1c0 answered"]);
});

it("an answer that comes while it works is read at the next boundary; a second is refused", async () => {
  const script = scriptedModel()
    .answers(ask())
    .answers(call("bash", { command: "until [ -e go ]; do sleep 0.05; done" }))
    .says("Used MIT.");
  const session = await agent.start(script);
  await session.until("question:asked");
  await expect
    .poll(async () => (await session.handle.query<{ questions: unknown[] }>("status")).questions.length)
    .toBe(1);
  const answer = { question: "s1c0", text: "MIT" };
  await session.handle.executeUpdate("answerQuestion", { args: [answer] });
  await expect(session.handle.executeUpdate("answerQuestion", { args: [answer] })).rejects.toThrow();
  await session.handle.signal("interrupt");
  expect(await session.result()).toMatchObject({ result: "Used MIT." });
  expect(await answersTold(session)).toHaveLength(1);
  expect(await statuses(session)).toEqual(["s1c0 answered"]);
});

it("ten are open at most, and a message withdraws them all and says so", async () => {
  const script = scriptedModel()
    .answers(...Array.from({ length: 11 }, (_, index) => ask(`Question ${index}?`)))
    .says("Waiting.")
    .says("Decided myself.");
  const session = await agent.start(script);
  await expect
    .poll(async () => (await session.handle.query<{ status: string }>("status")).status, { timeout: 20_000 })
    .toBe("waiting");
  expect((await statuses(session)).filter((row) => row.endsWith("open"))).toHaveLength(10);
  await session.handle.signal("guidance", { text: "Decide yourself." });
  expect(await session.result()).toMatchObject({ result: "Decided myself." });
  expect(lastRequest(session)).toContain("Not answered, since the person wrote a message instead");
  expect((await statuses(session)).filter((row) => row.endsWith("withdrawn"))).toHaveLength(11);
});

it("a wait for one ends with its answer", async () => {
  const script = scriptedModel().answers(ask()).answers(wait("s1c0")).says("Used MIT.");
  const session = await agent.start(script);
  await session.until("wait:started");
  await session.handle.signal("answer", "MIT");
  expect(await session.result()).toMatchObject({ result: "Used MIT." });
  expect((await resultTexts(agent.database.store, session.id))[1]).toMatch(/a person answered a question/);
});

it("stays open through an interrupt, and through a fresh history", async () => {
  const script = scriptedModel()
    .answers(ask())
    .answers(call("bash", { command: "sleep 60" }))
    .answers(call("bash", { command: "echo 1" }))
    .answers(call("bash", { command: "echo 2" }))
    .says("Done so far.")
    .says("Used MIT.");
  const session = await agent.start(script, { config: { limits: { maxHistoryEvents: 50 } } });
  await session.until("llm:tool-call", ({ data }) => data.name === "bash");
  await session.handle.signal("interrupt");
  await expect
    .poll(async () => (await session.handle.query<{ status: string }>("status")).status, { timeout: 30_000 })
    .toBe("waiting");
  expect(await statuses(session)).toEqual(["s1c0 open"]);
  const { rows } = await agent.database.store.pool.query("select 1 from runs where session_id = $1", [
    session.id,
  ]);
  expect(rows.length).toBeGreaterThan(1);
  await agent.client.workflow.getHandle(session.id).signal("answer", "MIT");
  expect(await agent.client.workflow.getHandle(session.id).result()).toMatchObject({ result: "Used MIT." });
  expect(await statuses(session)).toEqual(["s1c0 answered"]);
});

it("a wait for one ends when its default is used, which is told as its answer", async () => {
  const script = scriptedModel()
    .answers(ask("Which licence?", { default: "MIT", timeout_seconds: 4 }))
    .answers(wait("s1c0"))
    .answers(wait("s1c0"))
    .says("Used MIT.");
  const session = await agent.start(script);
  expect(await session.result()).toMatchObject({ result: "Used MIT." });
  const [, first, second] = await resultTexts(agent.database.store, session.id);
  expect(first).toMatch(/^Waited .*: the time is over\.$/);
  expect(await answersTold(session)).toEqual([
    "Answer to your question s1c0 (Which licence?): MIT (no one answered in time: this is your default)",
  ]);
  expect(second).toBe("Not waited: the question s1c0 is settled (defaulted); its answer came as a message.");
});

/** No question is asked in such sessions: as of every other. */
const REFUSED = {
  deny: /^There is no tool "ask_user"/,
  default: /^No one is asked in this session, so your default is used: MIT/,
} as const;

it.each(["deny", "default"] as const)("is settled at once where nobody is asked: %s", async (mode) => {
  const script = scriptedModel()
    .answers(ask("Which licence?", { default: "MIT" }))
    .says("Decided myself.");
  const session = await agent.start(script, {
    config: { questions: { mode, maxOpen: 5, parkAfter: 600_000 } },
  });
  expect(await session.result()).toMatchObject({ result: "Decided myself.", steps: 2 });
  const [told = ""] = await resultTexts(agent.database.store, session.id);
  expect(told).toMatch(REFUSED[mode]);
  expect((await statuses(session)).filter((row) => row.endsWith("open"))).toEqual([]);
  expect(await answersTold(session)).toEqual([]);
});

it("an answer to one that a reset took back is refused with the reason", async () => {
  const script = scriptedModel()
    .answers(call("bash", { command: "echo 1" }))
    .answers(ask())
    .answers(call("bash", { command: "until [ -e go ]; do sleep 0.05; done" }))
    .answers(call("bash", { command: "until [ -e go ]; do sleep 0.05; done" }))
    .says("Not asked again.");
  const session = await agent.start(script);
  await session.until("llm:tool-call", ({ step }) => step === 3);
  await resetToStep(agent.client, session.id, 2);
  await session.until("llm:tool-call", ({ step, epoch }) => step === 2 && epoch === 2);
  await expect(
    sendAnswer(clientServices(agent), session.id, { question: "s2c0", text: "MIT" }),
  ).rejects.toThrow("The question s2c0 of");
  await agent.client.workflow.getHandle(session.id).signal("interrupt");
  expect(await agent.client.workflow.getHandle(session.id).result()).toMatchObject({
    result: "Not asked again.",
  });
  expect(await answersTold(session)).toEqual([]);
});
