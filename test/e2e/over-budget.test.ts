/** `onBudget: ask`: people decide whether a session may go on beyond a budget of the operator's. */
import { expect, it } from "vitest";
import type { RunConfig } from "../../activities/config/agent-config.ts";
import { budgetAllowances } from "../../activities/store/schema/index.ts";
import { sendAnswer } from "../../client/sessions/send-answer.ts";
import { useAgent, type RunningSession } from "../support/agent-harness.ts";
import { checkSession } from "../support/checker/check-session.ts";
import { clientServices, say, sessionRow } from "../support/client-services.ts";
import { delegating } from "../support/delegating.ts";
import { bySession } from "../support/by-session.ts";
import { underPolicy } from "../support/operator-policy.ts";
import { questionRows, untilWaiting } from "../support/questions.ts";
import { lastTask, resetTo } from "../support/reset-run.ts";
import { call, scriptedModel, text } from "../support/scripted-model.ts";

const agent = useAgent();

/** $0.30 a step, and at most $0.40 for a request: two fit in a dollar, and a third does not. */
const usage = { input: 20_000, output: 1_000, cached: 0, reasoning: 0 };
const price = { input: 10, cached: 10, output: 100 };
const DOLLAR = { period: "month", usd: 1 } as const;
const steps = (count: number) =>
  Array.from({ length: count }).reduce<ReturnType<typeof scriptedModel>>(
    (script) => script.calls("bash", { command: "true" }).with({ usage }),
    scriptedModel(),
  );
const spendThree = () => steps(3).says("Done.").with({ usage });
const forTenant = (tenant: string, more: object = {}) =>
  underPolicy(agent, { budgets: [{ per: "tenant", of: tenant, ...DOLLAR }], ...more });
const begin = (tenant: string, script = spendThree(), more: Partial<RunConfig> = {}) =>
  agent.start(script, { owner: "ann", config: { tenant, price, maxOutput: 4_000, ...more } });
const answer = (session: RunningSession, by: string | undefined, words: object = { option: 1 }) =>
  sendAnswer(clientServices(agent), session.id, { ...words, ...(by === undefined ? {} : { by }) });
const allowances = async ({ id }: RunningSession) =>
  (await agent.database.store.db.select().from(budgetAllowances)).filter(({ sessionId }) => sessionId === id);

it("asks whose session it is and the approvers, and nobody else's answer counts", async () => {
  forTenant("asked", { approvers: ["boss", "cfo"] });
  const session = await begin("asked");
  const asked = await session.until("question:asked");
  expect(asked.data).toMatchObject({
    id: "s3budget",
    kind: "budget",
    options: [{ label: /another \$/ }, { label: "stop" }],
  });
  expect(asked.data.text).toMatch(
    /^The budget for tenant asked, month is \$1\.00; \$0\.60 of it are used or reserved, and the next request may cost \$.* It begins anew on \d{4}-\d\d-01\. May this session go on/,
  );
  expect(asked.data.expiresAt).toMatch(/-(01|28|29|30|31)T/);
  await untilWaiting(agent.database.store, session);
  await expect(answer(session, "bob")).rejects.toThrow(
    "only ann, boss or cfo may answer s3budget, and the answer is from bob",
  );
  await expect(answer(session, undefined)).rejects.toThrow("does not say whose it is");
  expect(await answer(session, "boss", { text: "$1" })).toMatchObject({ acknowledged: true });
  await session.until("question:answered");
  await expect(answer(session, "ann", { option: 2 })).rejects.toThrow(
    "not open any more (answered: another $1.00 by boss)",
  );
  expect(await session.result()).toMatchObject({ status: "completed", result: "Done." });
  expect(await allowances(session)).toMatchObject([{ question: "s3budget", usd: 1 }]);
  // What was allowed is this session's: another one of the same person has nothing.
  const other = await begin("asked");
  await expect(other.result()).rejects.toMatchObject({ cause: { type: "PolicyRefused" } });
  await checkSession(agent, session);
});

it("asks again when what was allowed is used up, and ends when the answer is stop", async () => {
  forTenant("again");
  const session = await begin("again", steps(9));
  await session.until("question:asked");
  await answer(session, "ann", { text: "$0.50" });
  const second = await session.until("question:asked", ({ data }) => data.id !== "s3budget");
  expect(second.data.id).toBe("s4budget");
  await answer(session, "ann", { text: "stop" });
  expect(await session.result()).toMatchObject({ status: "max_steps", limit: "budget" });
  expect((await session.until("session:ended")).data.reason).toMatch(
    /This session was allowed \$0\.50 beyond it, and has used \$0\.30 of that\./,
  );
  expect(session.model.requests).toHaveLength(3);
  // A message resumes it, which asks anew.
  await say(agent, session.id, { id: "m1", text: "Go on." });
  await untilWaiting(agent.database.store, session);
  await agent.client.workflow.getHandle(session.id).cancel();
});

it("is withdrawn when the session is cancelled, and allows nothing then", async () => {
  forTenant("cancelled");
  const session = await begin("cancelled");
  await untilWaiting(agent.database.store, session);
  await session.handle.cancel();
  await expect(session.result()).rejects.toThrow();
  expect(await questionRows(agent.database.store, session)).toMatchObject([
    { id: "s3budget", status: "withdrawn" },
  ]);
  await expect(answer(session, "ann")).rejects.toThrow("not open any more (withdrawn)");
  expect(await allowances(session)).toEqual([]);
});

it("looks again at a message: a budget that was raised meanwhile lets it go on", async () => {
  forTenant("raised");
  const session = await begin("raised");
  await untilWaiting(agent.database.store, session);
  await session.handle.signal("guidance", { text: "Look again." });
  await session.until("question:asked", ({ data }) => data.id === "s3budget2");
  await untilWaiting(agent.database.store, session);
  underPolicy(agent, { budgets: [{ per: "tenant", of: "raised", period: "month", usd: 9 }] });
  await session.handle.signal("guidance", { text: "And now." });
  expect(await session.result()).toMatchObject({ status: "completed" });
  expect((await questionRows(agent.database.store, session)).map(({ status }) => status)).toEqual([
    "withdrawn",
    "withdrawn",
  ]);
});

it("ends as with stop where nobody is asked, and where the policy says so", async () => {
  forTenant("alone");
  const alone = await begin("alone", spendThree(), {
    questions: { mode: "default", parkAfter: 600_000, maxOpen: 8 },
  });
  expect(await alone.result()).toMatchObject({ status: "max_steps", limit: "budget" });
  forTenant("strict", { onBudget: "stop" });
  const strict = await begin("strict");
  expect(await strict.result()).toMatchObject({ status: "max_steps", limit: "budget" });
  for (const session of [alone, strict])
    expect(await questionRows(agent.database.store, session)).toEqual([]);
});

it("one answer allows once, also after a reset to while it was waited for", async () => {
  forTenant("reset");
  const session = await begin(
    "reset",
    steps(3).says("Done.").with({ usage }).says("Done again.").with({ usage }),
  );
  await untilWaiting(agent.database.store, session);
  const { events } = await session.handle.fetchHistory();
  const last = lastTask(events ?? []);
  await session.handle.signal("answer", { text: "$2", by: "ann" });
  expect(await session.result()).toMatchObject({ status: "completed" });
  // The answer is applied again, as Temporal does by default.
  const runId = await resetTo(agent.client, session.id, () => last);
  expect(await agent.client.workflow.getHandle(session.id, runId).result()).toMatchObject({
    status: "completed",
  });
  expect(await allowances(session)).toMatchObject([{ question: "s3budget", usd: 2 }]);
});

it("a delegate's end is a result, its session asks, and both may spend what is allowed", async () => {
  forTenant("parent");
  const script = bySession({
    "": [
      [call("delegate", { task: "Spend." })],
      [call("delegate", { task: "Spend again." })],
      [text("All done.")],
    ],
    ".s1c0": [[call("bash", { command: "true" })], [text("First.")]],
    ".s2c0": [[text("Second.")]],
  });
  const session = await agent.start((request) => ({ ...script(request), usage }), {
    owner: "ann",
    config: { ...delegating(), tenant: "parent", price, maxOutput: 4_000 },
  });
  await session.until("question:asked");
  expect(await sessionRow(agent, `${session.id}.s1c0`)).toMatchObject({ status: "max_steps" });
  await answer(session, "ann", { text: "$5" });
  expect(await session.result()).toMatchObject({ status: "completed", result: "All done." });
  expect(await sessionRow(agent, `${session.id}.s2c0`)).toMatchObject({ status: "completed" });
});
