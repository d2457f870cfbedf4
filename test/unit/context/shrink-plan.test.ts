import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { compact } from "../../../activities/compaction/compact.ts";
import { tokensOf } from "../../../activities/transcript/boundary.ts";
import {
  findFault,
  buildView,
  GO_ON_TEXT,
  PRUNED_TEXT,
  shownMessage,
} from "../../../activities/transcript/view.ts";
import { planShrink } from "../../../activities/transcript/prune-plan.ts";
import type { Message, StoredMessage } from "../../../activities/contract/message.ts";
import type { Compaction } from "../../../activities/compaction/compaction.ts";
import { afterRound, roundOf, scriptedSummariser, work } from "../../support/compacting.ts";
import { calls, result, rowsOf, says, user } from "../../support/rows.ts";

const PREFIX = 2_000;
const TARGET = 20_000;
const huge = (lines: number) => "One more line of an output that fills every window.\n".repeat(lines);
const overflow = { trigger: "overflow", deterministic: true, targetTokens: TARGET } as const;

/** The view after an overflow's compaction, without a model. */
async function after(rows: readonly StoredMessage[]): Promise<{ done: Compaction; view: StoredMessage[] }> {
  const done = await compact("reactive-overflow", roundOf(rows, 1, overflow), scriptedSummariser().summarise);
  const hidden = new Set(done.kind === "pruned" || done.kind === "compacted" ? done.hidden : []);
  const marked = rows.map((row) => (hidden.has(row.sequence) ? { ...row, prunedStep: row.step } : row));
  return { done, view: done.kind === "compacted" ? afterRound(marked, done, 1) : marked };
}

describe("a live turn larger than the window", { tags: ["case-10"] }, () => {
  it("hides the largest results of the newest calls behind handles, as many as necessary", async () => {
    const newest: Message[] = [
      calls("", "a", "b", "c"),
      result("a", huge(2_000)),
      result("b", huge(300)),
      result("c", huge(2_500)),
    ];
    const { done, view } = await after(rowsOf([user("Build the app."), ...newest]));
    expect(done).toMatchObject({ kind: "pruned", hidden: [3, 5] });
    const built = buildView(view);
    expect(PREFIX + built.tokens).toBeLessThan(TARGET);
    const texts = built.messages.flatMap((message) =>
      message.role === "tool" ? [message.content[0].text] : [],
    );
    expect(texts[0]).toBe(`${PRUNED_TEXT} read_output handle="s1c0"`);
    expect(texts[1]).toBe(huge(300));
    expect(texts[2]).toContain('handle="s1c2"');
  });

  it("also replaces older messages, in the same compaction", async () => {
    const rows = rowsOf([user("Build."), ...work(20), calls("", "z"), result("z", huge(3_000))]);
    const { done, view } = await after(rows);
    expect(done).toMatchObject({ kind: "compacted", hidden: [rows.length] });
    expect(PREFIX + buildView(view).tokens).toBeLessThan(TARGET);
  });

  it("shows head and tail of a person's message larger than any window, with a handle", async () => {
    const said = `Begin here. ${huge(4_000)} And mind the end.`;
    const { done, view } = await after(rowsOf([user("Build."), says("What next?"), user(said)]));
    expect(done).toMatchObject({ kind: "pruned", hidden: [3] });
    const shown = buildView(view).messages.at(-1);
    const [part] = shown?.content ?? [];
    expect(part).toMatchObject({ text: expect.stringMatching(/^Begin here\. .*And mind the end\.$/s) });
    expect(part).toMatchObject({ text: expect.stringContaining('read_output handle="m3"') });
  });

  it("replaces even the newest calls if the model's own text is too large, and says so", async () => {
    const call = { id: "w", name: "write_file", input: { path: "src/big.ts", content: huge(4_000) } };
    const { done, view } = await after(
      rowsOf([user("Build."), calls("", call), result("w", "written", "completed", "write_file")]),
    );
    expect(done.kind).toBe("compacted");
    expect(view.map((row) => row.kind)).toEqual(["task", "summary"]);
    const { messages } = buildView(view);
    expect(messages.at(-1)).toMatchObject({ role: "user", content: [{ text: GO_ON_TEXT }] });
    expect(JSON.stringify(messages)).toContain("src/big.ts");
  });

  it(
    "never makes a view larger or malformed, and meets the target wherever hiding can",
    { timeout: 60_000 },
    () => {
      const message = fc.oneof(
        fc.nat(3_000).map((lines) => [user(huge(lines))]),
        fc
          .array(fc.nat(3_000), { minLength: 1, maxLength: 4 })
          .map((sizes, index = 0) => [
            calls("", ...sizes.map((_size, place) => `c${sizes.join("_")}_${place}_${index}`)),
            ...sizes.map((size, place) => result(`c${sizes.join("_")}_${place}_${index}`, huge(size))),
          ]),
      );
      fc.assert(
        fc.property(fc.array(message, { maxLength: 6 }), fc.nat(40_000), (groups, excess) => {
          const rows = rowsOf([user("Build."), ...groups.flat()]);
          const plan = planShrink(rows, excess);
          const marked = new Set(plan.sequences);
          const view = rows.map((row) => (marked.has(row.sequence) ? { ...row, prunedStep: row.step } : row));
          expect(tokensOf(rows) - tokensOf(view)).toBe(plan.savedTokens);
          expect(findFault(buildView(view).messages)).toBeUndefined();
          const left = view.filter((row) => row.prunedStep === undefined && row.role !== "assistant");
          const more = planShrink(left, Infinity).savedTokens;
          expect(plan.savedTokens >= excess || more === 0).toBe(true);
        }),
        { numRuns: 40 },
      );
    },
  );

  it("leaves a short message unchanged, marked or not", () => {
    const [row] = rowsOf([user("Short.")]);
    expect(shownMessage({ ...(row as StoredMessage), prunedStep: 3 })).toEqual(user("Short."));
  });
});
