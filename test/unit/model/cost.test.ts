import { describe, expect, it } from "vitest";
import { answerCostUsd, costUsd, sessionCostUsd } from "../../../activities/config/cost.ts";

/** As published for a model with a higher price above 272,000 input tokens (2026-11). */
const tiered = {
  input: 4,
  cached: 0.4,
  cacheWrite: 5,
  output: 20,
  above: { tokens: 272_000, input: 8, cached: 0.8, cacheWrite: 10, output: 30 },
  tiers: { priority: 2, flex: 0.5 },
};
const usage = (input: number, cached = 0, output = 0, cacheWrite = 0) => ({
  input,
  cached,
  output,
  cacheWrite,
});
const cents = (usd: number | null) => (usd === null ? null : Math.round(usd * 10_000) / 10_000);

describe("the cost of a call", { tags: ["S17", "R17"] }, () => {
  it.each([
    ["input, cache and output at their own prices", usage(100_000, 60_000, 1_000), 0.16 + 0.024 + 0.02],
    ["the whole request at the higher price above the threshold", usage(400_000), 3.2],
    ["output too, above it", usage(400_000, 300_000, 10_000), 0.8 + 0.24 + 0.3],
    ["the lower price at the threshold itself", usage(272_000), 1.088],
    ["what was written to the cache at its price", usage(100_000, 20_000, 0, 50_000), 0.12 + 0.008 + 0.25],
    ["writes above the threshold", usage(300_000, 0, 0, 300_000), 3],
  ])("counts %s", (_, bill, usd) => {
    expect(cents(costUsd(tiered, bill))).toBe(cents(usd));
  });

  it("is multiplied by the service tier's factor, and is unknown for an unknown tier", () => {
    const bill = usage(100_000, 0, 10_000);
    expect(cents(costUsd(tiered, bill))).toBe(0.6);
    expect(cents(costUsd(tiered, bill, { tier: "priority" }))).toBe(1.2);
    expect(cents(costUsd(tiered, bill, { tier: "flex" }))).toBe(0.3);
    expect(cents(costUsd(tiered, bill, { tier: "auto" }))).toBe(0.6);
    expect(costUsd(tiered, bill, { tier: "scale" })).toBeNull();
  });

  it("bills cache writes as other input if they have no price of their own", () => {
    expect(costUsd({ input: 1, cached: 0.1, output: 2 }, usage(1_000_000, 0, 0, 400_000))).toBe(1);
  });

  it("is unknown without a price or a bill", () => {
    expect(costUsd(undefined, usage(1))).toBeNull();
    expect(costUsd(tiered, undefined)).toBeNull();
  });
});

describe("the cost of a session", () => {
  const none = { calls: 0, input: 0, cached: 0, output: 0 };

  it("is the sum of its calls' costs when they were made", () => {
    expect(sessionCostUsd({ costUsd: 3.25, estimatedUsd: 0, uncosted: none }, { price: tiered })).toBe(3.25);
    expect(sessionCostUsd({ costUsd: 3.25, estimatedUsd: 0, uncosted: none }, {})).toBe(3.25);
  });

  it("prices calls stored without a cost one by one, never as one large request", () => {
    const uncosted = { calls: 40, input: 1_000_000, cached: 0, output: 0 };
    expect(sessionCostUsd({ costUsd: 1, estimatedUsd: 0, uncosted }, { price: tiered })).toBe(5);
  });

  it("is unknown if one of its calls is", () => {
    const uncosted = { calls: 1, input: 10, cached: 0, output: 1 };
    expect(sessionCostUsd({ costUsd: 1, estimatedUsd: 0, uncosted }, {})).toBeNull();
    expect(sessionCostUsd({ costUsd: 0, estimatedUsd: 0, uncosted: none }, {})).toBeNull();
    expect(sessionCostUsd({ costUsd: 0, estimatedUsd: 0, uncosted: none }, { price: tiered })).toBe(0);
  });

  it("of an answer is by the tier that served it, not the requested one, unless it is named", () => {
    const price = { input: 2, cached: 2, output: 2, tiers: { flex: 0.5 } };
    const usage = { input: 1_000_000, output: 0, cached: 0, reasoning: 0 };
    const target = { price, tier: "flex" };
    expect(answerCostUsd(target, { usage })).toBe(1);
    expect(answerCostUsd(target, { usage, tier: "default" })).toBe(2);
    expect(answerCostUsd(target, { usage, tier: "default", costUsd: 0.3 })).toBe(0.3);
  });
});
