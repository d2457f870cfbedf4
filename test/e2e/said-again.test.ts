/** A person's messages are delivered after any reset, retry or Terminate: once, in order, or dropped on request. */
import { describe, expect, it } from "vitest";
import { WORKFLOW_TYPE } from "../../workflows/messages.ts";
import { readWaiting } from "../../activities/store/guidance.ts";
import { type RunningSession, useAgent } from "../support/agent-harness.ts";
import { checkSession } from "../support/checker/check-session.ts";
import { eventually } from "../support/eventually.ts";
import { resetToStep } from "../support/reset-run.ts";
import { scriptedModel, text } from "../support/scripted-model.ts";
import { says, wordsAsked, timesAsked } from "../support/scripted-summaries.ts";
import { say, retry } from "../support/client-services.ts";

const agent = useAgent();

const store = () => agent.database.store;
const sayIn = ({ id }: RunningSession, mark: string) => say(agent, id, { id: mark, text: mark });
const current = ({ id }: RunningSession) => agent.client.workflow.getHandle(id);
const resultOf = (session: RunningSession) => current(session).result();
/** Said to a session that has ended, and its next run to the end. */
const sayAndWait = async (session: RunningSession, mark: string) => {
  await sayIn(session, mark);
  await resultOf(session);
};
const retryAndWait = async (session: RunningSession, ...how: readonly [number?, { dropMessages: true }?]) => {
  await retry(agent, session.id, ...how);
  await resultOf(session);
};
const waiting = async ({ id }: RunningSession) =>
  (await readWaiting(store().db, id)).map((message) => message.id);

/** Like `say`, to an ended session, whose new run has not begun: none does so soon. */
async function tellNobody({ id }: RunningSession): Promise<void> {
  const { taskQueue } = agent;
  const how = { workflowId: id, taskQueue, args: [{}], startDelay: "1 hour" } as const;
  const run = await agent.client.workflow.start(WORKFLOW_TYPE, how);
  await run.signal("guidance", { id: "mark-a", text: "mark-a" });
}
const runIdOf = async (session: RunningSession) => (await current(session).describe()).runId;

describe("messages to a completed session", () => {
  it("are delivered again after a retry from a step before them, whose run does not know them", async () => {
    const script = scriptedModel().says("One.").says("Two.").says("Three.").says("Four.");
    const session = await agent.run(script);
    await sayAndWait(session, "mark-a");
    await sayAndWait(session, "mark-b");
    await retryAndWait(session, 1);
    expect(timesAsked(session.model, ["mark-a", "mark-b"])).toEqual([1, 1]);
    const words = wordsAsked(session.model);
    expect(words.indexOf("mark-a")).toBeLessThan(words.indexOf("mark-b"));
    expect(await waiting(session)).toEqual([]);
    await checkSession(agent, session);
  });

  it("are delivered again after a reset of the earlier run in the Web UI", async () => {
    const script = scriptedModel().says("One.").says("Two.").says("Three.");
    const session = await agent.run(script);
    const first = await runIdOf(session);
    await sayAndWait(session, "mark-a");
    await resetToStep(agent.client, session.id, 1, first);
    await resultOf(session);
    expect(timesAsked(session.model, ["mark-a"])).toEqual([1]);
    await checkSession(agent, session);
  });

  it("are not delivered again if messages are dropped, now or later", async () => {
    const script = scriptedModel().says("One.").says("Two.").says("Three.").says("Four.");
    const session = await agent.run(script);
    await sayAndWait(session, "mark-a");
    await retryAndWait(session, 1, { dropMessages: true });
    expect(timesAsked(session.model, ["mark-a"])).toEqual([0]);
    expect(await waiting(session)).toEqual([]);
    await sayAndWait(session, "mark-b");
    expect(timesAsked(session.model, ["mark-a", "mark-b"])).toEqual([0, 1]);
  });
});

describe("messages to an ended session whose new run has not yet asked the model", () => {
  async function saidAndNotHeard(): Promise<RunningSession> {
    const script = scriptedModel().says("One.").says("Two.").says("Three.");
    const session = await agent.run(script);
    await tellNobody(session);
    return session;
  }

  it("are delivered by the retry, which goes back in the run before it", async () => {
    const session = await saidAndNotHeard();
    await retryAndWait(session);
    expect(timesAsked(session.model, ["mark-a"])).toEqual([1]);
    expect(await waiting(session)).toEqual([]);
  });

  it("are delivered after a reset of the earlier run in the Web UI", async () => {
    const session = await saidAndNotHeard();
    const { rows } = await store().pool.query<{ run_id: string }>(
      "select run_id from runs where session_id = $1",
      [session.id],
    );
    await resetToStep(agent.client, session.id, 1, rows[0]?.run_id);
    await resultOf(session);
    expect(timesAsked(session.model, ["mark-a"])).toEqual([1]);
  });

  it("are not delivered if messages are dropped, now or later", async () => {
    const session = await saidAndNotHeard();
    await retryAndWait(session, undefined, { dropMessages: true });
    expect(timesAsked(session.model, ["mark-a"])).toEqual([0]);
    await sayAndWait(session, "mark-b");
    expect(timesAsked(session.model, ["mark-a", "mark-b"])).toEqual([0, 1]);
  });
});

describe("messages that waited in a terminated run", () => {
  it("are delivered before the next message, by its run, also without an id", async () => {
    const script = scriptedModel().answers(text("I begin"), { type: "hang" }).says("Heard.");
    const session = await agent.start(script);
    await session.until("llm:chunk");
    await sayIn(session, "mark-a");
    await session.handle.signal("guidance", "mark-b");
    await session.handle.terminate("by hand");
    await sayAndWait(session, "mark-c");
    expect(timesAsked(session.model, ["mark-a", "mark-b", "mark-c"])).toEqual([1, 1, 1]);
    expect(await waiting(session)).toEqual([]);
  });

  it("are delivered by the next message's run if the terminated one had not even begun", async () => {
    const session = await agent.run(scriptedModel().says("One.").says("Two."));
    await tellNobody(session);
    await current(session).terminate("by hand");
    await sayAndWait(session, "mark-b");
    expect(timesAsked(session.model, ["mark-a", "mark-b"])).toEqual([1, 1]);
  });
});

it("a reset that applies the same signals again delivers each once, also those without an id", async () => {
  const said = Promise.withResolvers<void>();
  const script = scriptedModel()
    .calls("bash", { command: "true" })
    .replies(async () => {
      await said.promise;
      return says("All ears.");
    })
    .says("Heard.")
    .says("Heard again.");
  const session = await agent.start(script);
  await eventually("the second step is asked for", () => session.model.requests.length === 2);
  await session.handle.signal("guidance", { id: "a", text: "mark-a" });
  await session.handle.signal("guidance", "mark-b");
  await session.handle.signal("guidance", "mark-b");
  said.resolve();
  await session.result();
  expect(timesAsked(session.model, ["mark-a", "mark-b"])).toEqual([1, 2]);
  await resetToStep(agent.client, session.id, 2);
  await resultOf(session);
  expect(timesAsked(session.model, ["mark-a", "mark-b"])).toEqual([1, 2]);
  expect(await waiting(session)).toEqual([]);
});
