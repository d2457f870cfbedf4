/** The table of prune-due.ts against the recorded session: on which occasions old results are hidden first. */
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { pruneFirstFor } from "../../../activities/config/budget.ts";
import { compareFirst, replayOurs } from "../../bench/policies/ours.ts";
import { readRecorded } from "../../bench/policies/recorded.ts";
import { Replay } from "../../bench/policies/replay.ts";

const trajectory = readRecorded(fileURLToPath(new URL("../../fixtures/trajectory.json.gz", import.meta.url)));
/** As long as system prompt and tools were when the table was made (2,143 tokens); the benchmark takes those of today. */
const PREFIX = "word ".repeat(2_142);
const replayIn = (contextWindow: number) => () => new Replay(trajectory, contextWindow, PREFIX);

const WINDOWS = [16_000, 20_000, 24_000, 25_000, 28_000, 32_000, 48_000];
const cases = WINDOWS.flatMap((window) =>
  (["trigger", "return", "smaller"] as const)
    .filter((occasion) => pruneFirstFor(window)[occasion] !== undefined)
    .map((occasion) => [window, occasion] as const),
);

describe("where old results are hidden first", () => {
  it.each(cases)(
    "in %i tokens, on the occasion %s, it costs a fiftieth more at most and keeps the facts",
    async (window, occasion) => {
      const share = pruneFirstFor(window)[occasion] as number;
      const { first, summary } = await compareFirst(occasion, share, replayIn(window));
      expect(first.perStep / summary.perStep).toBeLessThanOrEqual(1.02);
      expect(first.facts).toBeGreaterThanOrEqual(summary.facts);
    },
    60_000,
  );

  it.each(WINDOWS)(
    "in a window of %i tokens, all occasions together cost and keep no less either",
    async (window) => {
      const [first, summary] = [
        await replayOurs(replayIn(window)(), {}),
        await replayOurs(replayIn(window)(), { pruneFirst: {} }),
      ];
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
