import { describe, expect, it } from "vitest";
import { reportedCostUsd, trustedUsage, usageInChunk } from "../../../activities/model/usage.ts";

/** A bill as the SDK gives it. */
const bill = (inputTokens: number, outputTokens: number, [read, written, reasoning]: readonly number[]) => ({
  inputTokens,
  outputTokens,
  inputTokenDetails: { cacheReadTokens: read, cacheWriteTokens: written },
  outputTokenDetails: { reasoningTokens: reasoning },
});

describe("usage [R43]", () => {
  it.each([
    ["keeps a plausible one", bill(2_000, 50, [1_024, 0, 10]), [2_000, 50, 1_024, 0, 10]],
    ["limits the parts of a figure to the figure", bill(100, 5, [90, 60, NaN]), [100, 5, 90, 10, 0]],
    ["counts whole tokens, as they are stored", bill(812.4, 12.5, [100.6, 3.2, 2.5]), [812, 13, 101, 3, 3]],
  ])("%s", (_, given, [input, output, cached, cacheWrite, reasoning]) => {
    expect(trustedUsage(given, 128_000)).toEqual({
      input,
      output,
      cached,
      reasoning,
      ...(cacheWrite === 0 ? {} : { cacheWrite }),
    });
  });

  it.each([
    ["missing", undefined],
    ["without figures", {}],
    ["NaN", { inputTokens: NaN, outputTokens: 1 }],
    ["without output", { inputTokens: 10 }],
    ["of zero input", { inputTokens: 0, outputTokens: 7 }],
    ["negative", { inputTokens: -1, outputTokens: 7 }],
    ["infinite", { inputTokens: Infinity, outputTokens: 7 }],
    ["less than a token", { inputTokens: 0.3, outputTokens: 1 }],
    ["more than ten windows", { inputTokens: 1_280_001, outputTokens: 7 }],
  ])("rejects a bill that is %s", (_, usage) => {
    expect(trustedUsage(usage, 128_000)).toBeUndefined();
  });

  it("accepts exactly ten windows", () => {
    expect(trustedUsage({ inputTokens: 1_280_000, outputTokens: 7 }, 128_000)?.input).toBe(1_280_000);
  });
});

/** How the SDK passes on unknown fields of its chat wire: zeros, and the provider's own object. */
const chat = (raw: Record<string, unknown>) => ({
  inputTokens: (raw["prompt_tokens"] as number | undefined) ?? 0,
  outputTokens: (raw["completion_tokens"] as number | undefined) ?? 0,
  inputTokenDetails: { cacheReadTokens: 0, cacheWriteTokens: undefined },
  outputTokenDetails: { reasoningTokens: 0 },
  raw,
});

describe("forms of usage [S18] [R9]", () => {
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
    expect(trustedUsage(chat(raw), 128_000)).toEqual({ input: 900, output: 7, reasoning: 0, ...usage });
  });

  it("uses the SDK's own figure for cache writes", () => {
    const usage = {
      inputTokens: 450,
      outputTokens: 7,
      inputTokenDetails: { cacheReadTokens: 50, cacheWriteTokens: 300 },
    };
    expect(trustedUsage({ ...usage, raw: { input_tokens: 100 } }, 128_000)).toEqual({
      input: 450,
      output: 7,
      cached: 50,
      cacheWrite: 300,
      reasoning: 0,
    });
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
    expect(reportedCostUsd(undefined)).toBeUndefined();
  });
});
