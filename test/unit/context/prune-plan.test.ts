import { describe, expect, it } from "vitest";
import { budgetFor } from "../../../activities/contract/budget.ts";
import type { Message } from "../../../activities/contract/message.ts";
import { pruneBatch, pruneGain } from "../../../activities/contract/prune-balance.ts";
import { planPrune, prunableTokens } from "../../../activities/transcript/prune-plan.ts";
import { pruneDue } from "../../../activities/contract/prune-due.ts";
import { stuckVerdict } from "../../../activities/contract/stuck.ts";
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
  it("marks a result of 50,000 tokens that is older than two user turns [case 15]", () => {
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

  it("does nothing if only 15,000 tokens could be saved [case 15]", () => {
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

  it("spares protected tools, and skips results that are already marked or shorter than a placeholder [case 15]", () => {
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
    expect(prunableTokens(rows, 0)).toBe(0);
  });

  it("hides the oldest of a long run with a single user message, beyond twice the protected tokens", () => {
    const rows = rowsOf([turn("task"), ...Array.from({ length: 12 }, () => step(10_000)).flat()]);
    const { sequences } = planPrune(rows, budget);
    expect(sequences).toEqual([3, 5, 7, 9]);
  });

  it("plans nothing more once a plan is carried out", () => {
    const rows = rowsOf([turn("task"), ...Array.from({ length: 12 }, () => step(10_000)).flat()]);
    const hidden = new Set(planPrune(rows, budget).sequences);
    const after = rows.map((row) => (hidden.has(row.sequence) ? { ...row, prunedStep: 12 } : row));
    expect(planPrune(after, budget).sequences).toEqual([]);
  });
});

describe("pruneDue", () => {
  const near = Math.ceil(budget.triggerTokens * 0.9);
  const full = { usedTokens: near, prunableTokens: 60_000 };

  it("postpones a compaction if it is always due: with enough beyond the protected tokens, near the trigger [case 15]", () => {
    expect(pruneDue(full, budget, "always")).toBe(true);
    expect(pruneDue({ ...full, prunableTokens: 59_999 }, budget, "always")).toBe(false);
    expect(pruneDue({ ...full, usedTokens: near - 1 }, budget, "always")).toBe(false);
  });

  it("hides nothing if it is switched off", () => {
    expect(pruneDue({ usedTokens: near, prunableTokens: 1_000_000 }, budget, "never")).toBe(false);
  });

  it("hides a batch in a large window, whose next compaction is far away", () => {
    const large = budgetFor(1_000_000, { triggerRatio: 0.8 });
    expect(pruneDue({ usedTokens: 120_000, prunableTokens: 90_000 }, large)).toBe(true);
  });

  it("waits for a batch that is worth billing the rest again [case 15]", () => {
    const large = budgetFor(1_000_000, { triggerRatio: 0.8 });
    expect(pruneDue({ usedTokens: 90_000, prunableTokens: 61_000 }, large)).toBe(false);
  });

  it("keeps the prefix near the trigger, where a compaction saves more for less", () => {
    const large = budgetFor(1_000_000, { triggerRatio: 0.8 });
    expect(pruneDue({ usedTokens: large.triggerTokens - 1, prunableTokens: 600_000 }, large)).toBe(false);
    expect(pruneDue(full, budget)).toBe(false);
  });
});

describe("pruneGain", () => {
  const large = budgetFor(1_000_000, { triggerRatio: 0.8 });
  const offer = { savedTokens: 50_000, behindTokens: 60_000, usedTokens: 120_000, growthTokens: 1_500 };

  it("grows with what is hidden, and falls with what follows it and with how full the window is", () => {
    const gain = pruneGain(offer, large);
    expect(pruneGain({ ...offer, savedTokens: 60_000 }, large)).toBeGreaterThan(gain);
    expect(pruneGain({ ...offer, behindTokens: 70_000 }, large)).toBeLessThan(gain);
    expect(pruneGain({ ...offer, usedTokens: 200_000 }, large)).toBeLessThan(gain);
  });

  it("is smaller if each step adds more, since it postpones for fewer steps", () => {
    expect(pruneGain({ ...offer, growthTokens: 6_000 }, large)).toBeLessThan(pruneGain(offer, large));
  });

  it("is exactly the gained steps at the average price less their own, less the rest billed once in full", () => {
    // Trigger 10,000; after a round 3,000 + 1,000 + 5 × 200 stay. A round reads 1,250, writes 6,400 and bills 4,500.
    const small = { ...budget, triggerTokens: 10_000, summaryTokens: 1_000, tailTokens: 8_000 };
    const step = 0.1 * 7_500 + ((1_250 + 6_400 + 4_500) * 200) / 5_000;
    const bought = { savedTokens: 2_000, behindTokens: 3_000, usedTokens: 7_000, growthTokens: 200 };
    expect(pruneGain(bought, small)).toBeCloseTo(10 * (step - 600) - 2_700, 6);
  });
});

it("pruneBatch minimises the cost of billing again plus that of carrying on, and is never below the minimum", () => {
  const offer = { savedTokens: 0, behindTokens: 50_000, usedTokens: 100_000, growthTokens: 1_000 };
  const cost = (batch: number) => (45_000 * 1_000) / batch + 0.05 * batch;
  const best = pruneBatch(offer, budget);
  expect(best).toBeCloseTo(30_000, 0);
  expect(cost(best)).toBeLessThan(Math.min(cost(best * 0.9), cost(best * 1.1)));
  expect(pruneBatch({ ...offer, behindTokens: 100 }, budget)).toBe(budget.pruneMinimumTokens);
});

describe("prunableTokens", () => {
  it("reports how many tokens a plan would hide, including protected ones", () => {
    const rows = rowsOf([turn("task"), ...Array.from({ length: 12 }, () => step(10_000)).flat()]);
    const { savedTokens } = planPrune(rows, budget);
    expect(prunableTokens(rows, 40_000)).toBe(savedTokens + 40_000);
  });

  it("reports none while the results of the last two turns have room left", () => {
    const rows = rowsOf([turn("task"), ...Array.from({ length: 6 }, () => step(10_000)).flat()]);
    expect(
      pruneDue({ usedTokens: 92_000, prunableTokens: prunableTokens(rows, 40_000) }, budget, "always"),
    ).toBe(false);
  });
});

describe("stuckVerdict", () => {
  it.each([
    ["the same call with the same result four times", ["a", "a", "a", "a"], "warn"],
    ["the same after other work", ["x", "y", "a", "a", "a", "a"], "warn"],
    ["two that take turns", ["a", "b", "a", "b"], "warn"],
    ["three times only", ["a", "a", "a"], undefined],
    ["changing results", ["a1", "a2", "a3", "a4", "a5"], undefined],
    ["different files", ["a", "b", "c", "d"], undefined],
    ["a break in between", ["a", "a", "b", "a", "a"], undefined],
  ])("judges %s [case 28]", (_what, hashes, verdict) => {
    expect(stuckVerdict(hashes, false)).toBe(verdict);
  });

  it("stops if the warning did not help [case 28]", () => {
    expect(stuckVerdict(["a", "a", "a", "a"], true)).toBe("stop");
  });
});
