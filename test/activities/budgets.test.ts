/** Money that is reserved for requests under way. */
import { eq } from "drizzle-orm";
import { expect, it } from "vitest";
import { budgetsFor, budgetsSchema, type MoneyBudget } from "../../activities/config/money-budgets.ts";
import {
  allowMoney,
  releaseMoney,
  reserveMoney,
  findSpender,
  toWindow,
} from "../../activities/store/budgets.ts";
import { readBudgetStates, setMoneyRules } from "../../activities/store/budget-states.ts";
import { readInstallation } from "../../activities/store/installation.ts";
import { recordCall } from "../../activities/store/model-calls.ts";
import { budgetReservations } from "../../activities/store/schema/index.ts";
import { createSession } from "../../activities/store/sessions.ts";
import { configOf } from "../support/run-config.ts";
import { useDatabase } from "../support/test-database.ts";

const database = useDatabase(45);
const MODEL = "openai/a";

async function begin(id: string, owner: string, more: object = {}): Promise<string> {
  await createSession(database.store, { id, owner, task: "x", config: { ...configOf({}), ...more } });
  return id;
}

async function budgetsOf(id: string, budgets: readonly object[]): Promise<MoneyBudget[]> {
  const spender = await findSpender(database.store.db, id);
  return spender === undefined ? [] : budgetsFor(budgetsSchema.parse(budgets), spender, spender.today);
}

const ask = (sessionId: string, usd: number, budgets: readonly MoneyBudget[]) =>
  reserveMoney(database.store.db, { sessionId, model: MODEL, usd }, budgets);
const bill = (sessionId: string, costUsd: number) =>
  recordCall(database.store.db, {
    sessionId,
    epoch: 1,
    step: 1,
    attempt: 1,
    purpose: "step",
    model: MODEL,
    status: "kept",
    estimatedInput: 1,
    estimatePure: true,
    usage: { input: 1, cached: 0, output: 1, reasoning: 0 },
    costUsd,
  });
const isRefused = (outcome: object) => "refused" in outcome;

it("forty sessions that ask at the same moment never have more than is left", async () => {
  const ids = await Promise.all(Array.from({ length: 40 }, (_, index) => begin(`ann-${index}`, "ann")));
  const budgets = await budgetsOf(ids[0] ?? "", [{ per: "person", period: "month", usd: 1 }]);
  const first = await Promise.all(ids.map((id) => ask(id, 0.25, budgets)));
  expect(first.filter((outcome) => !isRefused(outcome))).toHaveLength(4);
  // The bills come while others ask: a bill is there in place of its reservation, at each moment.
  const winners = ids.filter((_, index) => !isRefused(first[index] ?? {}));
  const losers = ids.filter((id) => !winners.includes(id));
  const [again] = await Promise.all([
    Promise.all(losers.map((id) => ask(id, 0.125, budgets))),
    ...winners.map((id) => bill(id, 0.25)),
  ]);
  expect(again.filter((outcome) => !isRefused(outcome))).toEqual([]);
});

it("a bill replaces what was reserved for it, be it lower or higher", async () => {
  const [one, two] = await Promise.all([begin("bob-1", "bob"), begin("bob-2", "bob")]);
  const budgets = await budgetsOf(one, [{ per: "person", period: "day", usd: 1 }]);
  expect(isRefused(await ask(one, 1, budgets))).toBe(false);
  expect(await ask(two, 0.5, budgets)).toMatchObject({ refused: { usedUsd: 1 } });
  await bill(one, 0.25);
  expect(isRefused(await ask(two, 0.5, budgets))).toBe(false);
  await bill(two, 2);
  expect(await ask(one, 0.01, budgets)).toMatchObject({ refused: { usedUsd: 2.25 } });
});

it("a request that ended without a bill gives back what was reserved, and only its own", async () => {
  const [one, two] = await Promise.all([begin("cy-1", "cy"), begin("cy-2", "cy")]);
  const budgets = await budgetsOf(one, [{ per: "person", period: "day", usd: 1 }]);
  const earlier = await ask(one, 1, budgets);
  const later = await ask(one, 1, budgets);
  if ("refused" in earlier || "refused" in later) throw new Error("There was enough.");
  await releaseMoney(database.store.db, earlier);
  expect(isRefused(await ask(two, 1, budgets))).toBe(true);
  await releaseMoney(database.store.db, later);
  expect(isRefused(await ask(two, 1, budgets))).toBe(false);
});

it("the strictest of all that apply refuses, and nothing is reserved in the others", async () => {
  const one = await begin("dee-1", "dee", { tenant: "acme" });
  const budgets = await budgetsOf(one, [
    { per: "person", period: "month", usd: 100 },
    { per: "tenant", period: "day", usd: 1 },
  ]);
  const refused = await ask(one, 2, budgets);
  expect(refused).toMatchObject({ refused: { budget: { scope: "tenant acme, day" }, usedUsd: 0 } });
  const rows = await database.store.db
    .select()
    .from(budgetReservations)
    .where(eq(budgetReservations.sessionId, one));
  expect(rows).toEqual([]);
});

it("what one session is allowed beyond a budget is its own, in that period, with its delegates", async () => {
  const [one, two] = await Promise.all([begin("fay-1", "fay"), begin("fay-2", "fay")]);
  await createSession(database.store, {
    id: `${one}.s1c0`,
    owner: "fay",
    task: "x",
    config: configOf({}),
    parent: { id: one, call: "s1c0", epoch: 1, access: "read" },
  });
  const budgets = await budgetsOf(one, [{ per: "person", period: "month", usd: 1 }]);
  const [budget] = budgets;
  if (budget === undefined) throw new Error("There is a budget.");
  await bill(one, 1);
  expect(isRefused(await ask(one, 0.5, budgets))).toBe(true);
  const allowance = { sessionId: one, question: "s2budget", scope: toWindow(budget), usd: 1 };
  await allowMoney(database.store.db, allowance);
  await allowMoney(database.store.db, allowance);
  expect(isRefused(await ask(two, 0.1, budgets))).toBe(true);
  expect(isRefused(await ask(one, 0.5, budgets))).toBe(false);
  expect(isRefused(await ask(`${one}.s1c0`, 0.5, budgets))).toBe(false);
  // What the session has reserved is not there for its delegate twice.
  expect(await ask(`${one}.s1c0`, 0.6, budgets)).toMatchObject({
    refused: { usedUsd: 1.5, allowance: { usd: 1, usedUsd: 0.5 } },
  });
  await bill(`${one}.s1c0`, 0.5);
  await bill(one, 0.25);
  expect(isRefused(await ask(one, 0.25, budgets))).toBe(false);
  expect(isRefused(await ask(one, 0.26, budgets))).toBe(true);
  // What it spends counts for all.
  expect(await ask(two, 0.1, budgets)).toMatchObject({ refused: { usedUsd: 2 } });
  // In the next period there is nothing of it; and a second answer adds to the first.
  const later = budgets.map((next) => ({ ...next, since: "2020-01-01" }));
  expect(isRefused(await ask(one, 0.25, later))).toBe(true);
  await allowMoney(database.store.db, { ...allowance, question: "s3budget" });
  expect(isRefused(await ask(one, 1.25, budgets))).toBe(false);
});

it("people are told of each share once in a period", async () => {
  const one = await begin("eve-1", "eve");
  const budgets = await budgetsOf(one, [{ per: "person", period: "month", usd: 10, warnAt: [0.5, 0.8] }]);
  const near = async () => {
    const outcome = await ask(one, 0.1, budgets);
    return "refused" in outcome ? undefined : outcome.near.map(({ share }) => share);
  };
  expect(await near()).toEqual([]);
  await bill(one, 5);
  expect(await near()).toEqual([0.5]);
  expect(await near()).toEqual([]);
  await bill(one, 4);
  expect(await near()).toEqual([0.8]);
});

it("a lower budget holds at once, and a budget that is gone does not", async () => {
  const one = await begin("flo-1", "flo");
  const month = (usd: number) => budgetsOf(one, [{ per: "person", period: "month", usd }]);
  await ask(one, 5, await month(10));
  await bill(one, 5);
  expect(isRefused(await ask(one, 0.1, await month(4)))).toBe(true);
  expect(isRefused(await ask(one, 0.1, []))).toBe(false);
});

it("a delegate spends for its parent, and the day is that of the policy's zone", async () => {
  const { db } = database.store;
  await begin("gus", "gus", { tenant: "acme" });
  await createSession(database.store, {
    id: "gus.s1c0",
    owner: "gus",
    task: "part",
    config: configOf({}),
    parent: { id: "gus", call: "s1c0", epoch: 1, access: "read" },
  });
  await readInstallation(db);
  const today = async (zone: string) => {
    await setMoneyRules(db, { budgets: [], budgetZone: zone });
    return (await findSpender(db, "gus.s1c0"))?.today;
  };
  const [west, east] = [await today("Etc/GMT+12"), await today("Etc/GMT-14")];
  expect(west).not.toBe(east);
  expect(await findSpender(db, "gus.s1c0")).toMatchObject({ person: "gus", tenant: "acme", repo: "" });
});

it("people see what is left of the budgets that the last worker has", async () => {
  const { db } = database.store;
  const [one, two] = await Promise.all([begin("hal-1", "hal"), begin("ivy-1", "ivy")]);
  const rules = [
    { per: "person", period: "month", usd: 10 },
    { per: "person", period: "day", usd: 4 },
    { per: "person", of: "ivy", period: "month", usd: 50 },
    { per: "all", period: "week", usd: 1_000 },
  ];
  await setMoneyRules(db, { budgets: budgetsSchema.parse(rules), budgetZone: "UTC" });
  await bill(one, 1.5);
  await ask(one, 0.5, await budgetsOf(one, rules));
  await bill(two, 2);
  const left = async (per: "person" | "all", name: string) =>
    ((await readBudgetStates(db, per, [name, "nobody's"])).get(name) ?? []).map(
      ({ budget: { period, limitUsd }, usedUsd, reservedUsd }) => [period, limitUsd, usedUsd, reservedUsd],
    );
  expect(await left("person", "hal")).toEqual([
    ["month", 10, 1.5, 0.5],
    ["day", 4, 1.5, 0.5],
  ]);
  expect(await left("person", "ivy")).toEqual([
    ["day", 4, 2, 0],
    ["month", 50, 2, 0],
  ]);
  expect(await left("person", "jo")).toEqual([
    ["month", 10, 0, 0],
    ["day", 4, 0, 0],
  ]);
  const [all] = await left("all", "");
  expect(all).toEqual(["week", 1_000, expect.any(Number), 0.5]);
  expect(all?.[2]).toBeGreaterThanOrEqual(3.5);
  // A worker without budgets: nothing is left of nothing.
  await setMoneyRules(db, {});
  expect(await left("person", "hal")).toEqual([]);
});
