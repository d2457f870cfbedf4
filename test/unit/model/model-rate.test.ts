import { describe, expect, it } from "vitest";
import { rateRefusal, strictest, type RateUse } from "../../../activities/config/model-target.ts";
import { operatorPolicySchema, rateOf } from "../../../activities/config/operator-policy.ts";

const unused: RateUse = { requests: 0, tokens: 0, open: 0, openTokens: 0, msToNextMinute: 42_000 };

describe("a model's rate limit", () => {
  it("is the stricter of two limits, for each kind", () => {
    const operators = { requestsPerMinute: 10, tokensPerMinute: 1_000 };
    expect(strictest(operators, { requestsPerMinute: 20, concurrent: 3 })).toEqual({
      requestsPerMinute: 10,
      tokensPerMinute: 1_000,
      concurrent: 3,
    });
    expect(strictest(undefined, {})).toBeUndefined();
  });

  it("is set by the first of the operator's patterns that matches", () => {
    const rates = { "openai/o*": { concurrent: 1 }, "*": { concurrent: 9 } };
    const policy = operatorPolicySchema.parse({ rates });
    expect(rateOf(policy, "openai/o3")).toEqual({ concurrent: 1 });
    expect(rateOf(policy, "acme/x")).toEqual({ concurrent: 9 });
    expect(rateOf(undefined, "acme/x")).toBeUndefined();
  });
});

describe("a request", () => {
  it("waits for the next minute if this one's requests, or its tokens, are finally used up", () => {
    expect(rateRefusal({ requestsPerMinute: 2 }, { ...unused, requests: 2 }, 1, 0)).toEqual({
      limit: "requestsPerMinute",
      waitMs: 42_000,
    });
    expect(rateRefusal({ tokensPerMinute: 100 }, { ...unused, tokens: 60 }, 41, 0)).toEqual({
      limit: "tokensPerMinute",
      waitMs: 42_000,
    });
    expect(rateRefusal({ tokensPerMinute: 100 }, { ...unused, tokens: 60 }, 40, 0)).toBeUndefined();
  });

  it("retries soon if an open request may leave room, with a growing delay", () => {
    const use = { ...unused, open: 2, tokens: 60, openTokens: 50 };
    expect(rateRefusal({ tokensPerMinute: 100 }, use, 80, 0)?.waitMs).toBe(1_000);
    expect(rateRefusal({ concurrent: 2 }, use, 80, 2)).toEqual({ limit: "concurrent", waitMs: 2_250 });
    expect(rateRefusal({ concurrent: 2 }, use, 80, 50)?.waitMs).toBe(10_000);
    expect(rateRefusal({ tokensPerMinute: 100 }, { ...use, msToNextMinute: 300 }, 80, 9)?.waitMs).toBe(300);
  });

  it("is sent alone if it is larger than a whole minute's limit", () => {
    expect(rateRefusal({ tokensPerMinute: 100 }, unused, 5_000, 0)).toBeUndefined();
    expect(rateRefusal({ tokensPerMinute: 100 }, { ...unused, tokens: 1 }, 5_000, 0)).toBeDefined();
  });
});
