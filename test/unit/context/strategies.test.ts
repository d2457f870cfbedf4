/** What each strategy keeps and who writes its summary: no two are the same. */
import { describe, expect, it } from "vitest";
import { strategies, strategyNames, type StrategyName } from "../../../activities/config/strategies.ts";
import { compact } from "../../../activities/compaction/compact.ts";
import type { KeepOptions } from "../../../activities/compaction/compaction.ts";
import { buildView } from "../../../activities/transcript/view.ts";
import {
  afterRound,
  compacted,
  roundOf,
  scriptedSummariser,
  summaryText,
  work,
} from "../../support/compacting.ts";
import { rowsOf, user } from "../../support/rows.ts";

it.each(strategyNames)(
  "every strategy %s shrinks the request, keeps the task, and needs no repair",
  async (name) => {
    const rows = rowsOf([user("Build the app."), ...work(40)]);
    const done = compacted(await compact(name, roundOf(rows), scriptedSummariser(summaryText()).summarise));
    expect(done.after).toBeLessThan(done.before * 0.9);
    const view = afterRound(rows, done, 1);
    expect(view[0]?.kind).toBe("task");
    expect(buildView(view).repairs).toEqual([]);
  },
);

describe("what a strategy keeps", () => {
  /** A long turn, then three short ones of a message, a call and its result. */
  const rows = rowsOf([
    user("Build the app."),
    ...work(30),
    ...[1, 2, 3].flatMap((turn) => [user(`Change ${turn}.`), ...work(1, "ok")]),
  ]);
  /** Calls and results at the end; user messages stay in any case. */
  const keptBy = async (name: StrategyName, options: KeepOptions = {}): Promise<number> => {
    const input = roundOf(rows, 1, { options });
    const done = compacted(await compact(name, input, scriptedSummariser(summaryText()).summarise));
    const newest = done.replaced.at(-1) ?? 0;
    return rows.filter((row) => row.sequence > newest && row.role !== "user").length;
  };

  it("is at most the last two turns for reactive-overflow, and ten messages for threshold-rounds", async () => {
    expect(await keptBy("reactive-overflow")).toBe(4);
    expect(await keptBy("threshold-rounds")).toBe(8);
  });

  it("follows preserveLastNTurns and keepMessages", async () => {
    expect(await keptBy("reactive-overflow", { preserveLastNTurns: 3 })).toBe(6);
    expect(await keptBy("threshold-rounds", { preserveLastNTurns: 1 })).toBe(2);
    expect(await keptBy("reactive-overflow", { keepMessages: 2 })).toBe(2);
    // The fourth turn is long: kept as far as the tail's tokens allow.
    expect(await keptBy("reactive-overflow", { preserveLastNTurns: 4 })).toBeGreaterThan(10);
  });

  it("differs in shares, in the beginning, and in who writes the summary", async () => {
    const long = rowsOf([user("Build the app."), ...work(40)]);
    const figures = strategyNames.map(async (name) => {
      const { summarise, requests } = scriptedSummariser(summaryText());
      const { replaced } = compacted(await compact(name, roundOf(long), summarise));
      expect(requests).toHaveLength(strategies[name].writer === "model" ? 1 : 0);
      return [name, { first: replaced[0], kept: long.length - (replaced.at(-1) ?? 0) }];
    });
    expect(Object.fromEntries(await Promise.all(figures))).toEqual({
      "threshold-turns": { first: 2, kept: 10 },
      "reactive-overflow": { first: 2, kept: 10 },
      "proactive-threshold": { first: 2, kept: 24 },
      "threshold-rounds": { first: 2, kept: 10 },
      "middle-removal": { first: 6, kept: 10 },
      "oldest-removal": { first: 2, kept: 40 },
      deterministic: { first: 2, kept: 10 },
    });
  });
});
