import { describe, expect, it } from "vitest";
import { budgetFor } from "../../../activities/context/budget.ts";
import type { Message } from "../../../activities/context/message.ts";
import { planPrune, prunableTokens, pruneDue } from "../../../activities/context/prune-plan.ts";
import { stuckVerdict } from "../../../activities/context/stuck.ts";
import { calls, result, rowsOf, says, user, type RowExtra } from "../../support/rows.ts";

const budget = budgetFor(128_000, { triggerRatio: 0.8 });
let count = 0;
const step = (tokens: number, extra: RowExtra = {}, tool = "bash"): [Message, RowExtra][] => {
  const id = `c${count++}`;
  return [
    [calls("", { id, name: tool }), {}],
    [result(id, "x", "completed", tool), { tokens, ...extra }],
  ];
};
const turn = (text: string): [Message, RowExtra] => [user(text), {}];

describe("planPrune", () => {
  it("marks a result of 50,000 tokens that two user turns have left behind [case 15]", () => {
    const rows = rowsOf([
      turn("task"),
      ...step(50_000),
      turn("two"),
      ...step(10),
      turn("three"),
      ...step(10),
    ]);
    const plan = planPrune(rows, budget);
    expect(plan.sequences).toEqual([3]);
    expect(plan.savedTokens).toBeGreaterThan(49_900);
  });

  it("does nothing where only 15,000 tokens could be saved [case 15]", () => {
    const rows = rowsOf([
      turn("task"),
      ...step(15_000),
      turn("two"),
      ...step(40_000),
      turn("three"),
      ...step(10),
    ]);
    expect(planPrune(rows, budget)).toEqual({ sequences: [], savedTokens: 0 });
  });

  it("spares protected tools, and skips what is marked already and what a placeholder would not shorten [case 15]", () => {
    const old = [
      ...step(30_000, {}, "todo"),
      ...step(60_000, { prunedStep: 2 }),
      ...step(20),
      ...step(30_000),
    ];
    const rows = rowsOf([turn("task"), ...old, turn("two"), turn("three"), ...step(39_000)]);
    const plan = planPrune(rows, budget);
    expect(plan.sequences).toEqual([9]);
    expect(plan.savedTokens).toBeLessThan(30_000);
  });

  it("stops at a summary [case 15]", () => {
    const rows = rowsOf([
      turn("task"),
      ...step(90_000),
      [says("sum"), { kind: "summary" }],
      turn("two"),
      turn("three"),
    ]);
    expect(planPrune(rows, budget).sequences).toEqual([]);
    expect(prunableTokens(rows)).toBe(0);
  });

  it("hides the oldest of a long run with a single user message, beyond twice the protected tokens", () => {
    const rows = rowsOf([turn("task"), ...Array.from({ length: 12 }, () => step(10_000)).flat()]);
    const { sequences } = planPrune(rows, budget);
    expect(sequences).toEqual([3, 5, 7, 9]);
  });

  it("finds nothing more once its plan is carried out", () => {
    const rows = rowsOf([turn("task"), ...Array.from({ length: 12 }, () => step(10_000)).flat()]);
    const hidden = new Set(planPrune(rows, budget).sequences);
    const after = rows.map((row) => (hidden.has(row.sequence) ? { ...row, prunedStep: 12 } : row));
    expect(planPrune(after, budget).sequences).toEqual([]);
  });
});

describe("pruneDue", () => {
  const near = Math.ceil(budget.triggerTokens * 0.9);

  it("waits for enough beyond the protected tokens, and for a cache that is soon lost anyway", () => {
    expect(pruneDue({ usedTokens: near, prunableTokens: 60_000 }, budget)).toBe(true);
    expect(pruneDue({ usedTokens: near, prunableTokens: 59_999 }, budget)).toBe(false);
    expect(pruneDue({ usedTokens: near - 1, prunableTokens: 60_000 }, budget)).toBe(false);
  });

  it("does not wait where the cache is cold", () => {
    expect(pruneDue({ usedTokens: 65_000, prunableTokens: 60_000, cold: true }, budget)).toBe(true);
  });
});

describe("stuckVerdict", () => {
  it.each([
    ["the same call with the same result four times", ["a", "a", "a", "a"], "nudge"],
    ["the same after other work", ["x", "y", "a", "a", "a", "a"], "nudge"],
    ["two that take turns", ["a", "b", "a", "b"], "nudge"],
    ["three times only", ["a", "a", "a"], undefined],
    ["changing results", ["a1", "a2", "a3", "a4", "a5"], undefined],
    ["different files", ["a", "b", "c", "d"], undefined],
    ["a break in between", ["a", "a", "b", "a", "a"], undefined],
  ])("judges %s [case 28]", (_what, hashes, verdict) => {
    expect(stuckVerdict(hashes, false)).toBe(verdict);
  });

  it("stops where the nudge did not help [case 28]", () => {
    expect(stuckVerdict(["a", "a", "a", "a"], true)).toBe("stop");
  });

  it("begins anew after a user message, which empties the list [case 28]", () => {
    expect(stuckVerdict(["a"], false)).toBeUndefined();
  });
});
