import { describe, expect, it } from "vitest";
import { windowMeasures } from "../../../activities/config/budget.ts";
import { reportedCostUsd, trustedUsage, usageInChunk } from "../../../activities/model/usage.ts";

const MOST_TOKENS = windowMeasures({ contextWindow: 128_000 }).usageTokens;

interface Figures {
  readonly input?: number;
  readonly output?: number;
  readonly cacheRead?: number;
  readonly cacheWrite?: number;
  readonly reasoning?: number;
}

/** As the SDK has it. */
const reported = ({ input, output, cacheRead, cacheWrite, reasoning }: Figures) => ({
  inputTokens: input,
  inputTokenDetails: { noCacheTokens: undefined, cacheReadTokens: cacheRead, cacheWriteTokens: cacheWrite },
  outputTokens: output,
  outputTokenDetails: { textTokens: undefined, reasoningTokens: reasoning },
  totalTokens: undefined,
});

describe("usage", { tags: ["R43"] }, () => {
  it("keeps a plausible bill, cached within input and reasoning within output", () => {
    const figures = { input: 2_000, output: 50, cacheRead: 1_024, reasoning: 10 };
    const usage = { input: 2_000, output: 50, cached: 1_024, reasoning: 10 };
    expect(trustedUsage(reported(figures), MOST_TOKENS)).toEqual(usage);
  });

  it("limits the parts of a figure to the figure", () => {
    const figures = { input: 100, output: 5, cacheRead: 90, cacheWrite: 60, reasoning: NaN };
    const usage = { input: 100, output: 5, cached: 90, cacheWrite: 10, reasoning: 0 };
    expect(trustedUsage(reported(figures), MOST_TOKENS)).toEqual(usage);
  });

  it.each([
    ["without figures", {}],
    ["NaN", { input: NaN, output: 1 }],
    ["without output", { input: 10 }],
    ["of zero input", { input: 0, output: 7 }],
    ["negative", { input: -1, output: 7 }],
    ["infinite", { input: Infinity, output: 7 }],
    ["more than ten windows", { input: 1_280_001, output: 7 }],
  ])("rejects a bill that is %s", (_, figures) => {
    expect(trustedUsage(reported(figures), MOST_TOKENS)).toBeUndefined();
  });

  it("counts whole tokens, as they are stored, also of a server that estimates", () => {
    const estimate = { input: 812.4, output: 12.5, cacheRead: 100.6, cacheWrite: 3.2, reasoning: 2.5 };
    const usage = { input: 812, output: 13, cached: 101, cacheWrite: 3, reasoning: 3 };
    expect(trustedUsage(reported(estimate), MOST_TOKENS)).toEqual(usage);
    expect(trustedUsage(reported({ input: 0.3, output: 1 }), MOST_TOKENS)).toBeUndefined();
  });

  it("accepts exactly ten windows", () => {
    expect(trustedUsage(reported({ input: 1_280_000, output: 7 }), MOST_TOKENS)?.input).toBe(1_280_000);
  });
});

/** How the SDK passes on unknown fields of its chat wire: zeros, and the provider's own object. */
const chat = (raw: Record<string, unknown>) => ({
  ...reported({
    input: (raw["prompt_tokens"] as number | undefined) ?? 0,
    output: (raw["completion_tokens"] as number | undefined) ?? 0,
    cacheRead: 0,
    reasoning: 0,
  }),
  raw: raw as Record<string, number>,
});

describe("forms of usage", { tags: ["S18", "R9"] }, () => {
  const prompt = { prompt_tokens: 900, completion_tokens: 7 };
  const hits = { prompt_cache_hit_tokens: 640, prompt_cache_miss_tokens: 260 };
  const anthropic = { cache_read_input_tokens: 50, cache_creation_input_tokens: 300 };
  const written = { prompt_tokens_details: { cached_tokens: 0, cache_write_tokens: 800 } };

  it.each([
    ["Moonshot: cached on top", { ...prompt, cached_tokens: 512 }, { cached: 512 }],
    ["DeepSeek: hits next to the sum", { ...prompt, ...hits }, { cached: 640 }],
    ["DeepSeek: hits and misses alone", { completion_tokens: 7, ...hits }, { cached: 640 }],
    ["OpenRouter: written to the cache", { ...prompt, ...written }, { cached: 0, cacheWrite: 800 }],
    ["LiteLLM: Anthropic's next to all", { ...prompt, ...anthropic }, { cached: 50, cacheWrite: 300 }],
    [
      "Anthropic's own, without its cache",
      { input_tokens: 100, output_tokens: 7, ...anthropic },
      { input: 450, cached: 50, cacheWrite: 300 },
    ],
    ["no cache in the input", { ...prompt, prompt_tokens: 100, cached_tokens: 800 }, { cached: 800 }],
  ])("reads %s", (_, raw, usage) => {
    expect(trustedUsage(chat(raw), MOST_TOKENS)).toEqual({ input: 900, output: 7, reasoning: 0, ...usage });
  });

  it("uses the SDK's own figure for cache writes", () => {
    const figures = reported({ input: 450, output: 7, cacheRead: 50, cacheWrite: 300 });
    const usage = { input: 450, output: 7, cached: 50, cacheWrite: 300, reasoning: 0 };
    expect(trustedUsage({ ...figures, raw: { input_tokens: 100 } }, MOST_TOKENS)).toEqual(usage);
  });

  it("finds the usage anywhere in a chunk", () => {
    const usage = { prompt_tokens: 3 };
    expect(usageInChunk({ choices: [], usage })).toBe(usage);
    expect(usageInChunk({ choices: [{ finish_reason: "stop", usage }] })).toBe(usage);
    expect(usageInChunk({ choices: [], usage: null, x_groq: { id: "r", usage } })).toBe(usage);
    expect(usageInChunk({ choices: [{ delta: {} }] })).toBeUndefined();
  });

  it("reads a router's charge, and the underlying provider's for a user's own key", () => {
    expect(reportedCostUsd({ raw: { cost: 0.0123 } })).toBe(0.0123);
    expect(reportedCostUsd({ raw: { cost: 0.01, cost_details: { upstream_inference_cost: 0.2 } } })).toBe(
      0.01,
    );
    const ownKey = { cost: 0.01, is_byok: true, cost_details: { upstream_inference_cost: 0.2 } };
    expect(reportedCostUsd({ raw: ownKey })).toBeCloseTo(0.21, 10);
    expect(reportedCostUsd({ raw: { prompt_tokens: 1 } })).toBeUndefined();
    expect(reportedCostUsd({})).toBeUndefined();
  });
});
