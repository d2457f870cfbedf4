/** Model requests that are held to the operator's budgets: what is reserved, given back and counted around them. */
import { eq } from "drizzle-orm";
import { expect, it } from "vitest";
import { findSpender } from "../../activities/store/budgets.ts";
import { budgetReservations, events, modelCalls } from "../../activities/store/schema/index.ts";
import { readUsage } from "../../activities/store/spending.ts";
import { summaryText } from "../support/compacting.ts";
import { openDirectAgent, type DirectAgent } from "../support/direct-agent.ts";
import { eventually } from "../support/eventually.ts";
import { underPolicy } from "../support/operator-policy.ts";
import { scriptedModel, text } from "../support/scripted-model.ts";
import { useDatabase } from "../support/test-database.ts";

const database = useDatabase(20);
const price = { input: 10, cached: 1, output: 10 };
const everyone = (usd: number, more: object = {}) => ({
  budgets: [{ per: "all", period: "month", usd, ...more }],
});

const reservedUsd = async ({ id }: DirectAgent) => {
  const { db } = database.store;
  const rows = await db.select().from(budgetReservations).where(eq(budgetReservations.sessionId, id));
  return rows.map(({ usd }) => usd);
};
const billsOf = ({ id }: DirectAgent) =>
  database.store.db
    .select({ status: modelCalls.status, costUsd: modelCalls.costUsd, input: modelCalls.inputTokens })
    .from(modelCalls)
    .where(eq(modelCalls.sessionId, id))
    .orderBy(modelCalls.id);

const year = { since: "2000-01-01", before: "2100-01-01" };

/** What is counted for its tenant. */
async function spentOf({ id }: DirectAgent) {
  const { db } = database.store;
  const rows = await readUsage(db, ["tenant"], year);
  const tenant = (await findSpender(db, id))?.tenant;
  const row = rows.find(({ of }) => of[0] === tenant);
  if (row === undefined) throw new Error("Nothing is counted.");
  return row;
}

/** A model that answers the first time when it is told to. */
function slowAtFirst() {
  const late = Promise.withResolvers<void>();
  const script = scriptedModel()
    .replies(async () => {
      await late.promise;
      return { parts: [text("Late.")] };
    })
    .says("Next.");
  return { late, script };
}

it("a request that waits for its model's rate holds no money meanwhile", async () => {
  const agent = await openDirectAgent(database, scriptedModel().says("One.").says("Two."), {
    config: { price, rate: { requestsPerMinute: 1 } },
  });
  underPolicy(agent, everyone(100));
  await agent.perform("modelStep", { step: 1 });
  await expect(agent.perform("modelStep", { step: 2 })).rejects.toMatchObject({ type: "ModelThrottled" });
  expect(await reservedUsd(agent)).toEqual([]);
});

it("a lost request is counted by its estimate before the next one is reserved", async () => {
  const { late, script } = slowAtFirst();
  const agent = await openDirectAgent(database, script, { config: { price, tenant: "late-1" } });
  underPolicy(agent, everyone(100));
  const lost = agent.perform("modelStep", { step: 1 }, { attempt: 1 }).catch((error: unknown) => error);
  await eventually("the model is asked", () => agent.model.log.length === 1);
  expect(await reservedUsd(agent)).toHaveLength(1);
  await agent.perform("modelStep", { step: 1 }, { attempt: 2 });
  const bills = await billsOf(agent);
  expect(bills.map(({ status }) => status)).toEqual(["wasted", "kept"]);
  expect(bills[0]?.costUsd).toBeGreaterThan(0);
  expect(await reservedUsd(agent)).toEqual([]);
  // Its bill comes after all, and replaces the estimate.
  const before = await spentOf(agent);
  late.resolve();
  await lost;
  const [replaced, kept] = await billsOf(agent);
  expect(replaced).toMatchObject({ status: "wasted", input: expect.any(Number) as number });
  expect(replaced?.costUsd).not.toBe(bills[0]?.costUsd);
  const after = await spentOf(agent);
  expect(after.calls).toBe(2);
  expect(before.calls).toBe(2);
  expect(after.costUsd).toBeCloseTo((replaced?.costUsd ?? 0) + (kept?.costUsd ?? 0), 9);
  expect(after.input).toBe((replaced?.input ?? 0) + (kept?.input ?? 0));
});

it("a late answer whose request was not counted yet is counted once", async () => {
  const { late, script } = slowAtFirst();
  const agent = await openDirectAgent(database, script, { config: { price, tenant: "late-2" } });
  const first = agent.perform("modelStep", { step: 1 }, { attempt: 1 }).catch((error: unknown) => error);
  await eventually("the model is asked", () => agent.model.log.length === 1);
  await agent.perform("modelStep", { step: 1 }, { attempt: 2 });
  late.resolve();
  await first;
  await agent.perform("closeSession", { step: 1, status: "cancelled" });
  expect((await billsOf(agent)).map(({ status }) => status)).toEqual(["kept", "wasted"]);
  expect(await spentOf(agent)).toMatchObject({ calls: 2, uncosted: 0 });
});

it("a lost request uses up a budget: the attempt after it is refused", async () => {
  const { late, script } = slowAtFirst();
  const agent = await openDirectAgent(database, script, { config: { price, tenant: "small" } });
  underPolicy(agent, { budgets: [{ per: "tenant", period: "month", usd: 0.05 }] });
  const lost = agent.perform("modelStep", { step: 2 }, { attempt: 1 }).catch((error: unknown) => error);
  await eventually("the model is asked", () => agent.model.log.length === 1);
  await eventually("the request is announced, which is stored beside it", async () => {
    return (await database.store.db.select().from(events)).some(
      ({ sessionId, type, step }) => sessionId === agent.id && type === "step:started" && step === 2,
    );
  });
  const [usd = 0] = await reservedUsd(agent);
  // Room for one such request, and not for the input of another before it.
  underPolicy(agent, { budgets: [{ per: "tenant", period: "month", usd: usd * 1.01 }] });
  const next = await agent.perform("modelStep", { step: 2 }, { attempt: 2 });
  expect(next).toMatchObject({ kind: "over-budget" });
  expect(agent.model.log).toHaveLength(1);
  late.resolve();
  await lost;
});

it("the end of a session gives back what is reserved for it", async () => {
  const agent = await openDirectAgent(database, scriptedModel().says("One."), { config: { price } });
  const row = { sessionId: agent.id, usd: 5, scopes: ["all, month, 2026-11-01"], model: "openai/a" };
  await database.store.db.insert(budgetReservations).values(row);
  await agent.perform("closeSession", { step: 0, status: "cancelled" });
  expect(await reservedUsd(agent)).toEqual([]);
});

it("where a prompt cache costs more to write than to leave, that is reserved", async () => {
  const { late, script } = slowAtFirst();
  const agent = await openDirectAgent(database, script, {
    config: { price: { ...price, cacheWrite: 20 }, maxOutput: 1_000 },
  });
  underPolicy(agent, everyone(100));
  const step = agent.perform("modelStep", { step: 1 });
  await eventually("the model is asked", () => agent.model.log.length === 1);
  const [usd = 0] = await reservedUsd(agent);
  late.resolve();
  await step;
  const [bill] = await billsOf(agent);
  expect(usd).toBeGreaterThan((20 * 0.9 * (bill?.input ?? Infinity)) / 1e6);
});

it("a summary that no budget has room for is made without a model", async () => {
  const script = scriptedModel()
    .calls("bash", { command: "echo one" })
    .calls("bash", { command: "echo two" })
    .says(summaryText({}));
  const agent = await openDirectAgent(database, script, { config: { price, tenant: "poor" } });
  await agent.step(1);
  await agent.step(2);
  underPolicy(agent, { budgets: [{ per: "tenant", of: "poor", period: "day", usd: 0.000_001 }] });
  const asked = agent.model.log.length;
  const facts = await agent.compact({ step: 3, round: 1, trigger: "manual" });
  expect(facts.kind).not.toBe("limited");
  expect(agent.model.log).toHaveLength(asked);
  expect(await reservedUsd(agent)).toEqual([]);
});

it("a model without a price is asked under a budget that allows it, and is not counted", async () => {
  const agent = await openDirectAgent(database, scriptedModel().says("Free."), {
    config: { price: undefined, tenant: "local" },
  });
  const one = { per: "tenant", of: "local", period: "day", usd: 0.01 };
  underPolicy(agent, { budgets: [one] });
  await expect(agent.perform("modelStep", { step: 1 })).rejects.toMatchObject({ type: "PolicyRefused" });
  underPolicy(agent, { budgets: [{ ...one, unpriced: "allow" }] });
  expect(await agent.perform("modelStep", { step: 1 })).toMatchObject({ kind: "answered" });
  const rows = await readUsage(database.store.db, ["tenant"], year);
  expect(rows.find(({ of }) => of[0] === "local")).toMatchObject({ calls: 1, uncosted: 1, costUsd: 0 });
});

it("forty sessions that ask at once never spend more than the budget", async () => {
  const late = Promise.withResolvers<void>();
  const config = { price, tenant: "crowd" };
  const agents = await Promise.all(
    Array.from({ length: 40 }, () => {
      const script = scriptedModel().replies(async () => {
        await late.promise;
        return { parts: [text("Done.")] };
      });
      return openDirectAgent(database, script, { config });
    }),
  );
  const asked = () => agents.filter(({ model }) => model.log.length > 0);
  const steps = (some: readonly DirectAgent[]) =>
    some.map((agent) => agent.perform("modelStep", { step: 2 }).then(({ kind }) => kind));
  const [first, ...others] = agents;
  if (first === undefined) throw new Error("There is none.");
  underPolicy(first, { budgets: [{ per: "tenant", period: "month", usd: 1 }] });
  const begun = steps([first]);
  await eventually("the model is asked", () => asked().length === 1);
  const [usd = 0] = await reservedUsd(first);
  // Room for four requests like the first one.
  for (const agent of others)
    underPolicy(agent, { budgets: [{ per: "tenant", period: "month", usd: usd * 4.5 }] });
  let refused = 0;
  const rest = steps(others).map((step) =>
    step.then((kind) => {
      if (kind === "over-budget") refused += 1;
      return kind;
    }),
  );
  await eventually("all others are refused", () => refused === 36);
  expect(asked()).toHaveLength(4);
  late.resolve();
  const kinds = await Promise.all([...begun, ...rest]);
  expect(kinds.filter((kind) => kind === "answered")).toHaveLength(4);
  const { costUsd } = await spentOf(first);
  expect(costUsd).toBeLessThanOrEqual(usd * 4.5);
});
