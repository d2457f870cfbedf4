import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { barOf, breakdownOf } from "../../../activities/context/breakdown.ts";

const sizes = { windowTokens: 10_000, outputTokens: 1_000, system: 500, tools: 1_500 };

describe("breakdownOf", () => {
  it("gives messages what system and tools leave of the bill, and the rest as free", () => {
    expect(breakdownOf({ ...sizes, used: 4_000 })).toMatchObject({ messages: 2_000, free: 5_000 });
  });

  it("never shows less than nothing", () => {
    expect(breakdownOf({ ...sizes, used: 1_000 }).messages).toBe(0);
    expect(breakdownOf({ ...sizes, used: 20_000 }).free).toBe(0);
  });
});

describe("barOf", () => {
  it("is as wide as it is asked to be, with a share for each part, whatever the figures", () => {
    fc.assert(
      fc.property(
        fc.nat(300_000),
        fc.nat(20_000),
        fc.integer({ min: 10, max: 80 }),
        (used, output, cells) => {
          const parts = breakdownOf({ ...sizes, windowTokens: 128_000, outputTokens: output, used });
          const bar = barOf(parts, cells);
          expect(bar.reduce((sum, [, wide]) => sum + wide, 0)).toBe(cells);
          for (const [, wide] of bar) expect(wide).toBeGreaterThanOrEqual(0);
        },
      ),
    );
  });

  it("shows half a window of messages as half the bar", () => {
    const bar = Object.fromEntries(barOf(breakdownOf({ ...sizes, used: 7_000 }), 20));
    expect(bar).toEqual({ system: 1, tools: 3, messages: 10, free: 4, outputBuffer: 2 });
  });
});
