import { describe, expect, it } from "vitest";
import { trustedUsage } from "../../../activities/model/usage.ts";

describe("usage [R43]", () => {
  it("keeps a bill that can be true, cached within input and reasoning within output", () => {
    expect(
      trustedUsage(
        {
          inputTokens: 2_000,
          outputTokens: 50,
          inputTokenDetails: { cacheReadTokens: 1_024 },
          outputTokenDetails: { reasoningTokens: 10 },
        },
        128_000,
      ),
    ).toEqual({ input: 2_000, output: 50, cached: 1_024, reasoning: 10 });
  });

  it("bounds the parts of a figure by the figure", () => {
    expect(
      trustedUsage(
        {
          inputTokens: 100,
          outputTokens: 5,
          inputTokenDetails: { cacheReadTokens: 900 },
          outputTokenDetails: { reasoningTokens: NaN },
        },
        128_000,
      ),
    ).toEqual({ input: 100, output: 5, cached: 100, reasoning: 0 });
  });

  it.each([
    ["missing", undefined],
    ["without figures", {}],
    ["NaN", { inputTokens: NaN, outputTokens: 1 }],
    ["without output", { inputTokens: 10 }],
    ["of zero input", { inputTokens: 0, outputTokens: 7 }],
    ["negative", { inputTokens: -1, outputTokens: 7 }],
    ["infinite", { inputTokens: Infinity, outputTokens: 7 }],
    ["more than ten windows", { inputTokens: 1_280_001, outputTokens: 7 }],
  ])("does not believe a bill that is %s", (_, usage) => {
    expect(trustedUsage(usage, 128_000)).toBeUndefined();
  });

  it("believes exactly ten windows", () => {
    expect(trustedUsage({ inputTokens: 1_280_000, outputTokens: 7 }, 128_000)?.input).toBe(1_280_000);
  });
});
