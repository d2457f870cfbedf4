/** The table of prune-due.ts against the recorded session: on which occasions old results are hidden first. */
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { pruneFirstFor } from "../../../activities/contract/prune-due.ts";
import { compareFirst } from "../../bench/policies/ours.ts";
import { readRecorded } from "../../bench/policies/recorded.ts";
import { Replay } from "../../bench/policies/replay.ts";

const trajectory = readRecorded(fileURLToPath(new URL("../../fixtures/trajectory.json.gz", import.meta.url)));
/** System prompt and tools of a fixed size; the benchmark takes those of today. */
const PREFIX = "word ".repeat(3_000);
const replayIn = (windowTokens: number) => () => new Replay(trajectory, windowTokens, PREFIX);

/** A few; `npm run bench -- --only policies` has the others. */
const cases = [
  [24_000, "trigger"],
  [32_000, "trigger"],
  [32_000, "return"],
  [48_000, "trigger"],
] as const;

describe("where old results are hidden first", () => {
  it.each(cases)(
    "in a window of %i tokens, on the occasion %s, that costs at most a fiftieth more and no fewer facts stay in view",
    async (window, occasion) => {
      const share = pruneFirstFor(window)[occasion];
      if (share === undefined) throw new Error("the summary comes first");
      const { first, summary } = await compareFirst(occasion, share, replayIn(window));
      expect(first.perStep / summary.perStep).toBeLessThanOrEqual(1.02);
      expect(first.facts).toBeGreaterThanOrEqual(summary.facts);
    },
    60_000,
  );
});

it("nowhere in a window of 128,000 tokens, where it costs more at the trigger", async () => {
  expect(pruneFirstFor(128_000)).toEqual({});
  const { first, summary } = await compareFirst("trigger", 1, replayIn(128_000));
  expect(first.perStep).toBeGreaterThan(summary.perStep * 1.02);
}, 60_000);
