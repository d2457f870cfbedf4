import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { toBar, toBreakdown } from "../../../activities/contract/request-size.ts";

const sizes = { contextWindow: 10_000, outputTokens: 1_000, system: 500, tools: 1_500 };

describe("breakdownOf", () => {
  it("gives messages the bill's remainder after system and tools, and the rest as free", () => {
    const { parts, capped } = toBreakdown({ ...sizes, used: 4_000 });
    expect(parts).toEqual({ system: 500, tools: 1_500, messages: 2_000, free: 5_000, outputBuffer: 1_000 });
    expect(capped).toEqual([]);
  });

  it("marks messages that come out below zero", () => {
    const { parts, capped } = toBreakdown({ ...sizes, used: 1_000 });
    expect(parts).toEqual({ system: 500, tools: 1_500, messages: 0, free: 7_000, outputBuffer: 1_000 });
    expect(capped).toEqual([{ part: "messages", wanted: -1_000 }]);
  });

  it("marks a request that uses the output buffer, or is larger than the window", () => {
    const tight = toBreakdown({ ...sizes, used: 9_400 });
    expect(tight.parts).toMatchObject({ messages: 7_400, outputBuffer: 600, free: 0 });
    expect(tight.capped).toEqual([{ part: "outputBuffer", wanted: 1_000 }]);
    const over = toBreakdown({ ...sizes, used: 20_000 });
    expect(over.parts).toMatchObject({ messages: 8_000, outputBuffer: 0, free: 0 });
    expect(over.capped.map(({ part }) => part)).toEqual(["messages", "outputBuffer"]);
  });

  it("has parts that add up to the window, for any figures", () => {
    const size = fc.nat(300_000);
    fc.assert(
      fc.property(size, size, size, size, (used, system, tools, outputTokens) => {
        const { parts } = toBreakdown({ contextWindow: 128_000, used, system, tools, outputTokens });
        const amounts = Object.values(parts);
        expect(amounts.reduce((sum, amount) => sum + amount, 0)).toBe(128_000);
        expect(Math.min(...amounts)).toBeGreaterThanOrEqual(0);
      }),
    );
  });
});

describe("barOf", () => {
  it("has the requested width, with a share for each part, for any figures", () => {
    fc.assert(
      fc.property(
        fc.nat(300_000),
        fc.nat(20_000),
        fc.integer({ min: 10, max: 80 }),
        (used, output, cells) => {
          const { parts } = toBreakdown({ ...sizes, contextWindow: 128_000, outputTokens: output, used });
          const bar = toBar(parts, cells);
          expect(bar.reduce((sum, [, wide]) => sum + wide, 0)).toBe(cells);
          for (const [, wide] of bar) expect(wide).toBeGreaterThanOrEqual(0);
        },
      ),
    );
  });

  it("shows half a window of messages as half the bar", () => {
    const bar = Object.fromEntries(toBar(toBreakdown({ ...sizes, used: 7_000 }).parts, 20));
    expect(bar).toEqual({ system: 1, tools: 3, messages: 10, free: 4, outputBuffer: 2 });
  });
});
