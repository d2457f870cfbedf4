/** `limits.onLimit: ask`: a person decides whether a session may exceed its cost or its steps. */
import { expect, it } from "vitest";
import type { ConfigChanges } from "../support/run-config.ts";
import type { RunConfig } from "../../activities/config/agent-config.ts";
import { findSession } from "../../activities/store/sessions.ts";
import { readWaiting } from "../../activities/store/guidance.ts";
import { sendAnswer } from "../../client/sessions/send-answer.ts";
import { checkSession } from "../support/checker/check-session.ts";
import { clientServices, say } from "../support/client-services.ts";
import { useAgent } from "../support/agent-harness.ts";
import { startKillableSession } from "../support/killable-session.ts";
import { questionRows, untilWaiting } from "../support/questions.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { resetTo, lastTask } from "../support/reset-run.ts";
import { underPolicy } from "../support/operator-policy.ts";

const agent = useAgent();

// 1,000 tokens in, 100 out at $1,000 a million each: $1.10 a step.
const usage = { input: 1_000, output: 100, cached: 0, reasoning: 0 };
const asking = (limits: Partial<RunConfig["limits"]>): ConfigChanges => ({
  price: { input: 1_000, cached: 1_000, output: 1_000 },
  limits: { onLimit: "ask", ...limits },
});
const steps = (count: number) =>
  Array.from({ length: count }).reduce<ReturnType<typeof scriptedModel>>(
    (script) => script.calls("bash", { command: "true" }).with({ usage }),
    scriptedModel(),
  );

it("asks at the cost limit, continues by the granted amount, within the operator's policy", async () => {
  underPolicy(agent, { max: { costUsd: 4 } });
  const session = await agent.start(steps(4).says("That is all.").with({ usage }), {
    config: asking({ maxCostUsd: 2 }),
  });
  const asked = await session.until("question:asked");
  expect(asked).toMatchObject({
    step: 3,
    data: {
      id: "s3cost",
      kind: "budget",
      text: "This session has cost $2.20; its limit is $2.00 (limits.maxCostUsd). May it continue?",
      options: [{ label: "another $1.80" }, { label: "stop" }],
    },
  });
  await untilWaiting(agent.database.store, session);
  expect(session.model.requests).toHaveLength(2);
  const services = clientServices(agent);
  await expect(sendAnswer(services, session.id, { text: "$2" })).rejects.toThrow("at most $1.80 more");
  expect(await sendAnswer(services, session.id, { text: "$1.50", by: "ann" })).toMatchObject({
    question: "s3cost",
    acknowledged: true,
  });
  // $2.20 + $1.50 = $3.70: two more steps, and $0.00 of $4 is left.
  expect(await session.result()).toMatchObject({
    status: "max_steps",
    limit: "cost",
    result: "That is all.",
  });
  expect(session.model.requests).toHaveLength(5);
  expect(await questionRows(agent.database.store, session)).toMatchObject([
    { id: "s3cost", kind: "budget", status: "answered", answer: "another $1.50", answeredBy: "ann" },
  ]);
  expect((await findSession(agent.database.store.db, session.id))?.config.limits.maxCostUsd).toBe(3.7);
  expect((await session.events()).filter(({ type }) => type === "limit:near")).toHaveLength(2);
  await checkSession(agent, session);
});

it("survives its worker; stop ends as without a question, and a message then asks again", async () => {
  const session = await startKillableSession(
    agent.database,
    steps(1).says("Stopped.").with({ usage }).says("Done.").with({ usage }),
    { config: asking({ maxCostUsd: 1 }) },
  );
  const worker = await session.startWorker();
  await untilWaiting(agent.database.store, session, 60_000);
  await worker.kill();
  const { id } = session;
  const services = { ...clientServices(agent), taskQueue: id };
  expect(await sendAnswer(services, id, { option: 2 })).toEqual({
    session: id,
    question: "s2cost",
    acknowledged: false,
  });
  await session.startWorker();
  expect(await session.handle.result()).toMatchObject({
    status: "max_steps",
    limit: "cost",
    result: "Stopped.",
  });
  expect(session.model.requests).toHaveLength(2);

  await say(agent, id, { id: "m1", text: "Go on." }, services);
  await untilWaiting(agent.database.store, session, 60_000);
  await sendAnswer(services, id, { question: "s3cost", option: 1 });
  expect(await session.services.client.workflow.getHandle(id).result()).toMatchObject({
    status: "completed",
    result: "Done.",
  });
  await checkSession(session.services, session, { kills: 1 });
});

it("resumed at its limit with nobody to ask, ends before it pays, and keeps the message", async () => {
  for (const onLimit of ["stop", "ask"] as const) {
    if (onLimit === "ask") underPolicy(agent, { max: { costUsd: 1 } });
    const script = steps(1).says("That is all.").with({ usage }).says("Never.");
    const session = await agent.start(script, { config: asking({ maxCostUsd: 1, onLimit }) });
    expect(await session.result()).toMatchObject({ status: "max_steps", limit: "cost", steps: 2 });
    await say(agent, session.id, { id: "m1", text: "Go on." });
    expect(await agent.client.workflow.getHandle(session.id).result()).toMatchObject({
      status: "max_steps",
      limit: "cost",
      steps: 2,
      result: "That is all.",
    });
    expect(session.model.requests).toHaveLength(2);
    const [, end] = await session.dataOf("session:ended");
    expect(end).toMatchObject({
      reason:
        "The session has reached its cost limit (limits.maxCostUsd: $1). The conversation and the files are kept.",
    });
    const { db } = agent.database.store;
    expect(await readWaiting(db, session.id)).toMatchObject([{ id: "m1", text: "Go on." }]);
    await checkSession(agent, session);
  }
});

it("is still there after a reset to while it waited; steps are this run's own", async () => {
  const session = await agent.start(steps(2).says("Done.").says("Done again."), {
    config: asking({ maxSteps: 2 }),
  });
  await untilWaiting(agent.database.store, session);
  const { events } = await session.handle.fetchHistory();
  const last = lastTask(events ?? []);
  await session.handle.signal("answer", { option: 1 });
  expect(await session.result()).toMatchObject({ status: "completed", result: "Done." });
  // The answer is not sent again.
  const runId = await resetTo(agent.client, session.id, () => last, { resetReapplyType: 2 });
  await untilWaiting(agent.database.store, session);
  const again = agent.client.workflow.getHandle(session.id, runId);
  expect(await questionRows(agent.database.store, session)).toMatchObject([
    { id: "s3steps", status: "superseded" },
    { id: "s3steps", status: "open" },
  ]);
  await again.executeUpdate("answerQuestion", { args: [{ text: "1 step" }] });
  expect(await again.result()).toMatchObject({ status: "completed", result: "Done again." });
  expect(await questionRows(agent.database.store, session)).toMatchObject([
    { status: "superseded" },
    { id: "s3steps", status: "answered", answer: "another 1 step" },
  ]);
  await checkSession(agent, session);
});

it("is withdrawn with the run, and is not asked in an unattended session", async () => {
  const session = await agent.start(steps(1).says("Never."), { config: asking({ maxSteps: 1 }) });
  await untilWaiting(agent.database.store, session);
  await session.handle.cancel();
  await expect(session.result()).rejects.toThrow();
  expect(await questionRows(agent.database.store, session)).toMatchObject([
    { id: "s2steps", status: "withdrawn" },
  ]);
  const alone = await agent.start(steps(1).says("As far as it goes."), {
    config: { ...asking({ maxSteps: 1 }), questions: { mode: "deny", parkAfter: 600_000, maxOpen: 8 } },
  });
  expect(await alone.result()).toMatchObject({ status: "max_steps", result: "As far as it goes." });
  expect(await questionRows(agent.database.store, alone)).toEqual([]);
});

it("keeps no sandbox during a long wait", async () => {
  const script = scriptedModel()
    .calls("bash", { command: "echo kept > file.txt" })
    .calls("bash", { command: "cat file.txt" })
    .says("Done.");
  const session = await agent.start(script, {
    config: { ...asking({ maxSteps: 1 }), questions: { mode: "ask", parkAfter: 200, maxOpen: 8 } },
  });
  await session.until("sandbox:parked");
  await session.handle.signal("answer", "5 steps");
  expect(await session.result()).toMatchObject({ result: "Done." });
  const [, read] = await session.dataOf("llm:tool-result");
  expect(JSON.stringify(read)).toContain("kept");
  await checkSession(agent, session);
});
