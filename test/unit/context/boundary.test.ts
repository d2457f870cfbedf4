import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cutView, tokensOf } from "../../../activities/transcript/boundary.ts";
import { budgetFor } from "../../../activities/config/budget.ts";
import type { Message } from "../../../activities/contract/message.ts";
import { buildView } from "../../../activities/transcript/view.ts";
import { calls, result, rowsOf, says, user } from "../../support/rows.ts";

const options = { tailMessages: 4, tailTokens: 100_000, userTokens: 100_000 };
const sequences = (rows: readonly { sequence: number }[]) => rows.map((row) => row.sequence);
const step = (id: string): Message[] => [calls(`about ${id}`, id), result(id)];

describe("budgetFor", () => {
  it("starts at 80 % of the window less the reserves", { tags: ["case-1"] }, () => {
    expect(budgetFor(128_000, { triggerRatio: 0.8 }).triggerTokens).toBe(93_600);
    expect(budgetFor(200_000, { triggerRatio: 0.8 }).triggerTokens).toBe(151_200);
  });

  it("counts measured system and tools if they are larger than the reserve", { tags: ["case-2"] }, () => {
    const lean = budgetFor(128_000, { triggerRatio: 0.9, prefixTokens: 1_000 });
    const heavy = budgetFor(128_000, { triggerRatio: 0.9, prefixTokens: 9_000 });
    expect(lean.triggerTokens - heavy.triggerTokens).toBe(6_300);
  });

  it("keeps reserves to a fifth of a small window, so that a 16k window works", { tags: ["case-1"] }, () => {
    const budget = budgetFor(16_000, { triggerRatio: 0.8, prefixTokens: 6_000 });
    expect(budget.triggerTokens).toBe(10_240);
    expect(budget.tailTokens + budget.userTokens + budget.summaryTokens).toBeLessThan(budget.triggerTokens);
  });
});

describe("cutView", () => {
  it("keeps a batch whole if the boundary falls between its results", { tags: ["case-3"] }, () => {
    const rows = rowsOf([
      user("task"),
      ...step("a"),
      calls("", "b1", "b2", "b3"),
      result("b1"),
      result("b2"),
      result("b3"),
      ...step("c"),
    ]);
    const cut = cutView(rows, { ...options, tailMessages: 4 });
    expect(sequences(cut.replaced)).toEqual([2, 3]);
    expect(sequences(cut.kept)).toEqual([1, 4, 5, 6, 7, 8, 9]);
  });

  it(
    "replaces nothing in a view that is empty, of one message or covered by the tail",
    { tags: ["case-4"] },
    () => {
      expect(cutView([], options).replaced).toEqual([]);
      expect(cutView(rowsOf([user("task")]), options).replaced).toEqual([]);
      expect(cutView(rowsOf([user("task"), ...step("a")]), options).replaced).toEqual([]);
    },
  );

  it(
    "keeps the newest calls with the message that led to them if they are the last",
    { tags: ["case-4"] },
    () => {
      const rows = rowsOf([user("task"), ...step("a"), ...step("b"), calls("", "c")]);
      expect(sequences(cutView(rows, { ...options, tailMessages: 1 }).kept)).toContain(6);
    },
  );

  it("ends the tail at its tokens, but never inside the live turn", () => {
    const long = "words ".repeat(2_000);
    const rows = rowsOf([
      user("task"),
      ...step("a"),
      calls("", "b"),
      result("b", long),
      calls("", "c"),
      result("c", long),
    ]);
    const cut = cutView(rows, { ...options, tailTokens: 1_000 });
    expect(sequences(cut.kept)).toEqual([1, 6, 7]);
  });

  it("includes an unanswered user message, and the calls before it, in the live turn", () => {
    const rows = rowsOf([user("task"), ...step("a"), ...step("b"), user("and also"), user("now")]);
    expect(sequences(cutView(rows, { ...options, tailMessages: 0, userTokens: 0 }).kept)).toEqual([
      1, 4, 5, 6, 7,
    ]);
  });

  it("always keeps the task, and user messages newest first within their tokens", () => {
    const rows = rowsOf([
      user("task"),
      user("old rule"),
      ...step("a"),
      user("new rule"),
      ...step("b"),
      ...step("c"),
    ]);
    const room = tokensOf([rows[4]!]);
    const cut = cutView(rows, { ...options, tailMessages: 2, userTokens: room });
    expect(sequences(cut.kept)).toEqual([1, 5, 8, 9]);
    expect(sequences(cut.replaced)).toEqual([2, 3, 4, 6, 7]);
  });

  it("keeps the newest user message if a tight budget has no room for it", () => {
    const rows = rowsOf([user("task"), user("old rule"), user("new rule"), ...step("b"), ...step("c")]);
    const tight = { ...options, tailMessages: 2, userTokens: 0 };
    expect(sequences(cutView(rows, { ...tight, newestUserTokens: 100 }).kept)).toEqual([1, 3, 6, 7]);
    expect(sequences(cutView(rows, { ...tight, newestUserTokens: 2 }).kept)).toEqual([1, 6, 7]);
  });

  it("folds in an earlier summary and never reaches past it", () => {
    const rows = rowsOf([
      user("task"),
      [says("sum"), { kind: "summary" }],
      ...step("a"),
      ...step("b"),
      ...step("c"),
    ]);
    const cut = cutView(rows, { ...options, tailMessages: 2 });
    expect(sequences(cut.replaced)).toEqual([2, 3, 4, 5, 6]);
    expect(cut.previous?.sequence).toBe(2);
    expect(cutView(rows, { ...options, tailMessages: 50 }).replaced).toEqual([]);
  });

  it("splits no batch and loses no row, wherever it cuts", { tags: ["case-3"] }, () => {
    const block = fc.oneof(
      fc.constant([user("say")]),
      fc.constant([says("hm")]),
      fc.integer({ min: 1, max: 4 }).map((count) => {
        const ids = Array.from({ length: count }, (_, index) => `c${index}`);
        return [calls("", ...ids), ...ids.map((id) => result(id, "r".repeat(200)))];
      }),
    );
    fc.assert(
      fc.property(
        fc.array(block, { maxLength: 12 }),
        fc.nat(12),
        fc.nat(2_000),
        fc.nat(100),
        (blocks, messages, tail, users) => {
          // Ids repeat in every batch and the view makes them unique, so only the pairing counts here.
          const rows = rowsOf([user("task"), ...blocks.flat()]);
          const cut = cutView(rows, { tailMessages: messages, tailTokens: tail, userTokens: users });
          expect(sequences([...cut.kept, ...cut.replaced]).toSorted((a, b) => a - b)).toEqual(
            sequences(rows),
          );
          for (const part of [cut.kept, cut.replaced]) {
            const repairs = buildView(part).repairs.filter((repair) => repair.kind !== "duplicate-call");
            expect(repairs).toEqual([]);
          }
          expect(cut.kept[0]?.kind).toBe("task");
        },
      ),
    );
  });
});
