import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { viewSize } from "../../../activities/transcript/size.ts";
import { estimateMessage } from "../../../activities/contract/request-size.ts";
import {
  buildView,
  toHandle,
  PRUNED_TEXT,
  shownMessage,
  shownTokens,
  tokensSaved,
} from "../../../activities/transcript/view.ts";
import { calls, result, rowsOf, says, user } from "../../support/rows.ts";

const long = "a line of output\n".repeat(200);

describe("buildView", () => {
  it("shows rows unchanged, with the tokens they were stored with", () => {
    const rows = rowsOf([
      user("task"),
      calls("look", "a"),
      [result("a", long), { tokens: 777 }],
      says("done"),
    ]);
    const view = buildView(rows);
    expect(view.messages).toEqual([user("task"), calls("look", "a"), result("a", long), says("done")]);
    expect(view.sizes[2]).toBe(777);
    expect(view.tokens).toBe(rows.reduce((sum, row) => sum + row.tokens, 0));
    expect(view.repairs).toEqual([]);
  });

  it(
    "shows a pruned result as a placeholder with its handle, and does not change the row",
    { tags: ["case-15"] },
    () => {
      const rows = rowsOf([
        user("task"),
        calls("", "a", "b"),
        result("a", long),
        [result("b", long), { prunedStep: 3 }],
      ]);
      const view = buildView(rows);
      expect(view.messages[2]).toEqual(result("a", long));
      expect(view.messages[3]).toEqual(result("b", `${PRUNED_TEXT} read_output handle="s1c1"`));
      expect(view.sizes[3]).toBe(estimateMessage(view.messages[3]!));
      expect(rows[3]).toMatchObject({ content: [{ text: long }] });
    },
  );

  it("is well-formed if a result is missing, and marks repairs", { tags: ["case-17"] }, () => {
    const view = buildView(rowsOf([user("task"), calls("", "a", "b"), result("b")]));
    expect(view.messages.map((message) => message.role)).toEqual(["user", "assistant", "tool", "tool"]);
    expect(view.sizes).toHaveLength(4);
    expect(view.repairs[0]).toEqual({ kind: "missing-result", toolCallId: "a" });
  });

  it("counts a hidden row's placeholder for any figures in its handle", () => {
    const [, , row] = rowsOf([user("task"), calls("", "a"), result("a", long)]);
    if (row === undefined) throw new Error("There are three rows.");
    fc.assert(
      fc.property(fc.nat(200_000), fc.nat(120), fc.integer({ min: 1, max: 1_200 }), (step, index, epoch) => {
        const hidden = { ...row, step, epoch, slot: `tool:${index}`, prunedStep: step };
        expect(shownTokens(hidden)).toBe(estimateMessage(shownMessage(hidden)));
        expect(tokensSaved({ ...hidden, prunedStep: undefined })).toBe(row.tokens - shownTokens(hidden));
        expect(tokensSaved(hidden)).toBe(0);
      }),
    );
  });

  it("names the handle of a tool row only", () => {
    expect(toHandle({ slot: "tool:0", step: 12 })).toBe("s12c0");
    expect(toHandle({ slot: "summary:3", step: 12 })).toBeUndefined();
  });
});

describe("viewSize", () => {
  const usage = { input: 5_000, output: 200 };
  const options = {
    prefixTokens: 3_000,
    ratio: 1,
    oneRequestTokens: 4 * 128_000,
    pruneProtectTokens: 40_000,
  };

  it("starts from the newest bill and adds later rows", { tags: ["case-18"] }, () => {
    const rows = rowsOf([user(long), [calls("", "a"), { usage }], [result("a", long), { tokens: 400 }]]);
    expect(viewSize({ rows, ...options })).toMatchObject({
      next: { tokens: 5_600, estimated: false },
    });
  });

  it("is a labelled pure estimate before the first bill", { tags: ["case-18"] }, () => {
    const rows = rowsOf([user(long)]);
    const pureTokens = 3_000 + rows[0]!.tokens;
    expect(viewSize({ rows, ...options })).toEqual({
      next: { tokens: pureTokens, estimated: true },
      basis: undefined,
      pureTokens,
      ratio: options.ratio,
      prunableTokens: 0,
      growthTokens: undefined,
    });
  });

  it("never uses a bill from before a compaction", { tags: ["case-18"] }, () => {
    const summary = says("Session Summary");
    const rows = rowsOf([
      user("task"),
      [summary, { kind: "summary", slot: "summary:1", sequence: 99 }],
      [says("older answer, in the tail"), { usage: { input: 120_000, output: 500 } }],
    ]);
    expect(viewSize({ rows, ...options })).toMatchObject({ next: { estimated: true } });
    expect(viewSize({ rows, ...options }).next.tokens).toBeLessThan(4_000);
  });

  it("subtracts what prune has hidden since the bill, and only once", () => {
    const hidden = rowsOf([
      user("task"),
      calls("", "a"),
      [result("a", long), { tokens: 1_000, prunedStep: 2 }],
      [calls("", "b"), { usage }],
      [result("b"), { tokens: 10 }],
    ]);
    const saved = 1_000 - shownTokens(hidden[2]!);
    expect(viewSize({ rows: hidden, ...options }).next.tokens).toBe(5_200 + 10 - saved);
    const billedAgain = [...hidden, ...rowsOf([[says("x"), { usage }]], 6, 2)];
    expect(viewSize({ rows: billedAgain, ...options }).next.tokens).toBe(5_200);
  });
});
