import { describe, expect, it } from "vitest";
import { type Occasion, pruneDue, prunesFirst } from "../../../activities/contract/budget.ts";
import { budgetFor, calculateBudget, pruneFirstFor } from "../../../activities/config/budget.ts";
import type { Message } from "../../../activities/contract/message.ts";
import { planPrune, prunableTokens } from "../../../activities/transcript/prune-plan.ts";
import { toMeasure } from "../../../activities/context/context-size.ts";
import { configOf } from "../../support/run-config.ts";
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
  it("marks a result of 50,000 tokens that is older than two user turns", { tags: ["case-15"] }, () => {
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

  it("does nothing if only 15,000 tokens could be saved", { tags: ["case-15"] }, () => {
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

  it(
    "spares protected tools, and results that are marked or shorter than a placeholder",
    { tags: ["case-15"] },
    () => {
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
    },
  );

  it("stops at a summary", { tags: ["case-15"] }, () => {
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

  it("hides the oldest of a long run with a single user message, beyond the protected tokens", () => {
    const rows = rowsOf([turn("task"), ...Array.from({ length: 12 }, () => step(10_000)).flat()]);
    const { sequences } = planPrune(rows, budget);
    expect(sequences).toEqual([3, 5, 7, 9, 11, 13, 15, 17]);
  });

  it("spares the last two user turns up to twice the protected tokens, if there are older ones", () => {
    const ten = Array.from({ length: 3 }, () => step(10_000)).flat();
    const rows = rowsOf([turn("task"), ...ten, turn("two"), ...ten, turn("three"), ...ten]);
    expect(planPrune(rows, budget).sequences).toEqual([3, 5, 7]);
    const long = rowsOf([turn("task"), ...ten, turn("two"), ...ten, turn("three"), ...ten, ...ten]);
    expect(planPrune(long, budget).sequences).toEqual([3, 5, 7, 10]);
  });

  it("plans nothing more once a plan is carried out", () => {
    const rows = rowsOf([turn("task"), ...Array.from({ length: 12 }, () => step(10_000)).flat()]);
    const hidden = new Set(planPrune(rows, budget).sequences);
    const after = rows.map((row) => (hidden.has(row.sequence) ? { ...row, prunedStep: 12 } : row));
    expect(planPrune(after, budget).sequences).toEqual([]);
  });
});

describe("prune after each step, the asked rule", { tags: ["case-15"] }, () => {
  // The document's own numbers: the newest 40,000 tokens of results are protected, at least 20,000 must be saved.
  it.each([16_000, 64_000, 128_000, 200_000, 1_000_000])(
    "protects 40,000 tokens and hides 20,000 or more, in a window of %i, however empty",
    (window) => {
      const config = configOf({ context: { options: { prune: "always" } } }, { contextWindow: window });
      const figures = calculateBudget(config, 3_000);
      expect(figures).toMatchObject({
        pruneProtectTokens: 40_000,
        pruneMinimumTokens: 20_000,
        pruneFirst: {},
      });
      const due = (prunableTokens: number) => pruneDue(prunableTokens, figures, "each-step");
      expect(due(60_000)).toBe(true);
      expect(due(59_999)).toBe(false);
    },
  );

  it.each([16_000, 32_000, 128_000])(
    "counts what is protected by the same numbers, in a window of %i tokens",
    (window) => {
      const config = configOf({ context: { options: { prune: "always" } } }, { contextWindow: window });
      const { pruneProtectTokens } = toMeasure({ config, tokenRatio: undefined }, { tokens: 3_000 });
      expect(pruneProtectTokens).toBe(40_000);
      const rows = (count: number) =>
        rowsOf([turn("task"), ...Array.from({ length: count }, () => step(5_050)).flat()]);
      const figures = calculateBudget(config, 3_000);
      const dueAfter = (count: number) =>
        pruneDue(prunableTokens(rows(count), pruneProtectTokens), figures, "each-step");
      // Seven of 5,050 are protected; four more come to 20,000 together, without their placeholders.
      expect([dueAfter(10), dueAfter(11)]).toEqual([false, true]);
      expect(planPrune(rows(10), figures).sequences).toEqual([]);
      expect(planPrune(rows(11), figures).sequences).toEqual([3, 5, 7, 9]);
    },
  );

  it("scales a prune before a summary to a window below 128,000 tokens", () => {
    const figures = (window: number) => {
      const { pruneProtectTokens: protect, pruneMinimumTokens: least } = budgetFor(window, {
        triggerRatio: 0.8,
      });
      return [protect, least];
    };
    expect(figures(128_000)).toEqual([40_000, 20_000]);
    expect(figures(1_000_000)).toEqual([40_000, 20_000]);
    expect(figures(16_000)).toEqual([3_200, 2_400]);
  });

  it("hides the older results of a single turn, as soon as they are 20,000 tokens", () => {
    const rows = (count: number) =>
      rowsOf([turn("task"), ...Array.from({ length: count }, () => step(10_050)).flat()]);
    expect(planPrune(rows(4), budget).sequences).toEqual([]);
    expect(planPrune(rows(5), budget).sequences).toEqual([3, 5]);
    const isDue = (count: number) => pruneDue(prunableTokens(rows(count), 40_000), budget, "each-step");
    expect([isDue(4), isDue(5)]).toEqual([false, true]);
  });
});

describe("prune before a summary", () => {
  const used = 20_000;
  const at = (window: number, occasion: Occasion, saved: number) => {
    const figures = { ...budgetFor(window, { triggerRatio: 0.8 }), pruneFirst: pruneFirstFor(window) };
    const numbers = { usedTokens: used, prunableTokens: figures.pruneProtectTokens + saved };
    return prunesFirst(numbers, occasion, { budget: figures, triggerTokens: used });
  };

  it("comes first by window and occasion, if little enough of the trigger is left after it", () => {
    expect(at(32_000, "trigger", used * 0.35 + 1)).toBe(true);
    expect(at(32_000, "trigger", used * 0.35 - 1)).toBe(false);
    expect(at(24_000, "trigger", used * 0.35 + 1)).toBe(false);
    expect(at(62_000, "trigger", used * 0.5 - 1)).toBe(false);
    expect(at(62_001, "trigger", used)).toBe(false);
    expect(at(32_000, "return", 4_800)).toBe(true);
    // Saving less than the minimum would not be worth an activity.
    expect(at(32_000, "return", 4_799)).toBe(false);
    expect(at(128_000, "return", used)).toBe(false);
    expect(at(26_000, "smaller", used * 0.3 + 1)).toBe(true);
    expect(at(32_000, "smaller", used * 0.3 + 1)).toBe(false);
  });

  it("never comes first if it does not bring the request under the trigger", () => {
    const figures = { ...budgetFor(200_000, { triggerRatio: 0.8 }), pruneFirst: { return: 1 } };
    const numbers = { usedTokens: 180_000, prunableTokens: 65_000 };
    expect(prunesFirst(numbers, "return", { budget: figures, triggerTokens: 155_000 })).toBe(false);
    expect(prunesFirst(numbers, "return", { budget: figures, triggerTokens: 155_001 })).toBe(true);
  });

  it("is switched off by an empty table", () => {
    const numbers = { usedTokens: 30_000, prunableTokens: 40_000 };
    const figures = { ...budgetFor(32_000, { triggerRatio: 0.8 }), pruneFirst: {} };
    expect(prunesFirst(numbers, "trigger", { budget: figures, triggerTokens: 30_000 })).toBe(false);
  });
});

it.each(["auto", "never"] as const)("with the mode %s, hides nothing after a step", (mode) => {
  expect(pruneDue(1_000_000, budget, mode)).toBe(false);
});

describe("prunableTokens", () => {
  it("reports how many tokens a plan would hide, including protected ones", () => {
    const rows = rowsOf([turn("task"), ...Array.from({ length: 12 }, () => step(10_000)).flat()]);
    const { savedTokens } = planPrune(rows, budget);
    expect(prunableTokens(rows, 40_000)).toBe(savedTokens + 40_000);
  });

  it("reports none while the results of the last two turns have room left", () => {
    const six = Array.from({ length: 6 }, () => step(10_000)).flat();
    const rows = rowsOf([turn("task"), turn("two"), turn("three"), ...six]);
    expect(pruneDue(prunableTokens(rows, 40_000), budget, "each-step")).toBe(false);
  });
});
