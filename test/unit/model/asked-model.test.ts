import { describe, expect, it } from "vitest";
import { agentConfigSchema } from "../../../activities/config/agent-config.ts";
import { cacheSeconds, fallbackOf, withFallback } from "../../../activities/config/asked-model.ts";
import { resolveRun } from "../../../activities/config/resolve-run.ts";

function runOf(models: object, name: string) {
  const resolved = resolveRun(agentConfigSchema.parse({ models }), name);
  if (!resolved.ok) throw new Error(resolved.message);
  return resolved.run;
}

describe("the model of a request", () => {
  const run = runOf({ "gpt-4o": { fallback: ["groq/x"], reasoning: { effort: "low" } } }, "gpt-4o");

  it("is the fallback with all its own settings and none of the session's model", () => {
    const asked = withFallback(run, 1);
    expect(asked).toMatchObject({ model: "groq/x", contextWindow: 32_000, context: run.context });
    expect(asked).not.toHaveProperty("reasoning");
    expect(asked).not.toHaveProperty("price");
    expect(asked.fallback).toBe(run.fallback);
  });

  it("is the session's own if there is no fallback, or if the fallback no longer exists", () => {
    expect(withFallback(run, undefined)).toBe(run);
    expect(withFallback(run, 2)).toBe(run);
  });
});

describe("the fallback in force", () => {
  const config = runOf({ "openai/gpt-5.4": { fallback: ["anthropic/claude-opus-5"] } }, "openai/gpt-5.4");
  const [own, other] = ["openai/gpt-5.4", "anthropic/claude-opus-5"];

  it("is the last that answered, the one that replaces it now, or the carried one", () => {
    expect(fallbackOf(config, { fallback: 1, model: other })).toBe(1);
    expect(fallbackOf(config, { fallback: 1, model: own, switched: "fallback" })).toBe(1);
    expect(fallbackOf(config, { fallback: 1, model: own })).toBe(1);
    expect(fallbackOf(config, { model: own })).toBeUndefined();
  });

  it("is none after a person has switched the model, with its own list or without", () => {
    const alone = runOf({}, "google/gemini-3.8-flash");
    const listed = runOf(
      { "google/gemini-3.8-flash": { fallback: ["openai/gpt-5.4"] } },
      "google/gemini-3.8-flash",
    );
    for (const given of [alone, listed])
      expect(fallbackOf(given, { fallback: 1, model: other })).toBeUndefined();
  });
});

describe("how long a provider caches a request's prefix", { tags: ["S19"] }, () => {
  it.each([
    ["openai/gpt-4o", 600],
    ["openai/gpt-6.1-sol", 1_800],
    ["anthropic/claude-x", 300],
    ["deepseek/deepseek-v4-flash", 7_200],
  ])("of %s: %i s", (model, seconds) => {
    expect(cacheSeconds(runOf({}, model))).toBe(seconds);
  });

  it("is the configured time, and nothing where it is switched off", () => {
    expect(cacheSeconds(runOf({ "gpt-4o": { cache: "24h" } }, "gpt-4o"))).toBe(86_400);
    expect(cacheSeconds(runOf({ "gpt-4o": { cache: false } }, "gpt-4o"))).toBe(0);
  });
});
