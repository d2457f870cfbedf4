/** How often a command in the background is looked at while a session waits for it. */
import { describe, expect, it } from "vitest";
import { TRIES } from "../../../activities/contract/tries.ts";
import { untilNextLookMs } from "../../../activities/waits/end-wait.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const WEEK_MS = 7 * 24 * HOUR_MS;

/** When it is looked at, in ms since the wait began. */
function looksWithin(waitMs: number): number[] {
  const looks: number[] = [];
  for (let at = 0; at < waitMs; at += untilNextLookMs(at)) looks.push(at);
  return looks;
}

describe("looks at a command", () => {
  it.each([
    ["20 s", 20_000, 1_000],
    ["3 min", 3 * MINUTE_MS, 9_000],
    ["an hour", HOUR_MS, 10_000],
    ["6 hours", 6 * HOUR_MS, MINUTE_MS],
    ["a week", WEEK_MS, MINUTE_MS],
  ])("see an end within %s after at most so many ms", (_what, waitedMs, mostMs) => {
    const late = looksWithin(waitedMs).map((at) => untilNextLookMs(at));
    expect(Math.max(...late)).toBeLessThanOrEqual(mostMs);
    expect(Math.min(...late)).toBe(1_000);
  });

  it("are fewer than 11,000 in a week, and fewer than an activity may have attempts", () => {
    const { length } = looksWithin(WEEK_MS);
    expect(length).toBeGreaterThan(10_080);
    expect(length).toBeLessThan(11_000);
    expect(length).toBeLessThan(TRIES.deferred);
  });
});
