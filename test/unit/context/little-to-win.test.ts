/** Compactions that can save next to nothing: no model is asked for minutes to write what would be refused. */
import fc from "fast-check";
import { expect, it } from "vitest";
import { compact } from "../../../activities/compaction/compact.ts";
import { budgetFor } from "../../../activities/config/budget.ts";
import { roundOf, scriptedSummariser, work } from "../../support/compacting.ts";
import { rowsOf, user } from "../../support/rows.ts";

/** A round in a window of which instructions and tools take a part. */
function round(contextWindow: number, prefixTokens: number, steps: number, lines = 30) {
  const rows = rowsOf([user("Build the app."), ...work(steps, "Another line was printed.\n".repeat(lines))]);
  const budget = budgetFor(contextWindow, { triggerRatio: 0.8, prefixTokens });
  return { budget, input: roundOf(rows, 1, { budget, prefixTokens, summariserRoomTokens: contextWindow }) };
}

it("a window that is nearly all prefix needs no model's summary, unless a person asks", async () => {
  const windows = fc.record({
    window: fc.integer({ min: 2_000, max: 8_192 }),
    prefix: fc.integer({ min: 55, max: 95 }),
    steps: fc.integer({ min: 2, max: 12 }),
    trigger: fc.constantFrom("threshold", "overflow"),
  });
  await fc.assert(
    fc.asyncProperty(windows, async ({ window, prefix, steps, trigger }) => {
      const { input } = round(window, Math.floor((window * prefix) / 100), steps);
      const { summarise, requests } = scriptedSummariser();
      const done = await compact("threshold-turns", { ...input, trigger }, summarise);
      expect(requests).toEqual([]);
      if (done.kind === "failed") expect(done.attempts.map(({ rung }) => rung)).toEqual(["deterministic"]);
    }),
  );
  const { summarise, requests } = scriptedSummariser("no", "no", "no", "no");
  await compact("threshold-turns", { ...round(8_192, 5_000, 12).input, trigger: "manual" }, summarise);
  expect(requests).not.toEqual([]);
});

it("messages hardly longer than a summary are replaced without a model either", async () => {
  const { summarise, requests } = scriptedSummariser();
  const { input } = round(32_000, 3_000, 14, 15);
  const done = await compact("threshold-turns", { ...input, options: { keepMessages: 20 } }, summarise);
  expect(requests).toEqual([]);
  expect(done.kind).not.toBe("nothing");
});

it("in a usual window the model is asked", async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 12_000, max: 60_000 }), async (window) => {
      const { summarise, requests } = scriptedSummariser("no", "no", "no", "no");
      await compact("threshold-turns", round(window, 3_000, 40, Math.ceil(window / 160)).input, summarise);
      expect(requests).not.toEqual([]);
    }),
    { numRuns: 10 },
  );
});

it("a failed summary is told also where large results were hidden in its place", async () => {
  const { input } = round(4_096, 3_300, 0);
  const rows = rowsOf([user("Build the app."), ...work(4, "ok"), ...work(1, "Another line.\n".repeat(200))]);
  const { summarise } = scriptedSummariser();
  const done = await compact("threshold-turns", { ...input, rows, targetTokens: 3_500 }, summarise);
  expect(done).toMatchObject({
    kind: "pruned",
    failed: { kind: "failed", attempts: [{ rung: "deterministic" }] },
  });
});
