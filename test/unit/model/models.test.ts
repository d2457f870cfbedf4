import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { agentConfigSchema } from "../../../activities/config/agent-config.ts";
import { resolveModel as resolve } from "../../../activities/config/models.ts";
import { resolveRun } from "../../../activities/config/resolve-run.ts";
import type { ModelConfig } from "../../../activities/config/model-target.ts";
import { type Environment, fullModelName, missingVariables } from "../../../activities/config/providers.ts";

const resolveModel = (name: string, models: Record<string, ModelConfig>, environment?: Environment) =>
  resolve(name, { models, providers: {} }, environment);

describe("resolving a model", { tags: ["U21"] }, () => {
  it("treats a bare name as OpenAI's", () => {
    expect(fullModelName("gpt-4o")).toBe("openai/gpt-4o");
    const resolved = resolveModel("gpt-4o", {});
    expect(resolved).toMatchObject({
      ok: true,
      model: { model: "openai/gpt-4o", contextWindow: 128_000, api: "responses" },
    });
  });

  it("merges configuration over the table, field by field", () => {
    const resolved = resolveModel("openai/gpt-4o", {
      "gpt-4o": {
        contextWindow: 32_000,
        api: "chat",
        price: { input: 1, cached: 1, output: 1 },
        headroom: 0.5,
      },
    });
    expect(resolved).toMatchObject({
      ok: true,
      model: { contextWindow: 32_000, maxOutput: 16_384, api: "chat", headroom: 0.5, price: { input: 1 } },
    });
  });

  it("accepts a model that is only configured, as text and without a price", () => {
    const resolved = resolveModel(
      "local/qwen",
      { "local/qwen": { contextWindow: 32_768, api: "chat" } },
      { OPENAI_BASE_URL: "http://x/v1" },
    );
    expect(resolved).toEqual({
      ok: true,
      isUnlisted: true,
      notes: [],
      model: {
        model: "local/qwen",
        modelName: "local/qwen",
        provider: { name: "openai", baseUrlEnv: "OPENAI_BASE_URL", keyEnv: "OPENAI_API_KEY" },
        contextWindow: 32_768,
        maxOutput: 8_192,
        moreOutput: 16_384,
        api: "chat",
        input: ["text"],
      },
    });
  });

  it("keeps the spelling of a name for a server behind OPENAI_BASE_URL", () => {
    const gptOss = { contextWindow: 131_072, api: "chat" as const };
    const environment = { OPENAI_BASE_URL: "http://x/v1" };
    for (const name of ["openai/gpt-oss-120b", "gpt-oss-120b"]) {
      expect(resolveModel(name, { "gpt-oss-120b": gptOss }, environment)).toMatchObject({
        model: { model: "openai/gpt-oss-120b", modelName: name },
      });
    }
    expect(resolveModel("openai/gpt-4.1", {})).toMatchObject({ model: { modelName: "gpt-4.1" } });
  });

  it.each(["openai/", "", "/x", "a\0b", "x\ny", "x".repeat(300)])(
    "refuses %j, which names no model",
    (name) => {
      expect(resolveModel(name, {})).toMatchObject({
        ok: false,
        message: expect.stringMatching(/^.{1,200}cannot be a model/) as string,
      });
    },
  );

  it("takes OpenAI's own address in OPENAI_BASE_URL for OpenAI, which knows no prefixes", () => {
    for (const url of ["https://api.openai.com/v1", "https://eu.api.openai.com/v1/"]) {
      const environment = { OPENAI_BASE_URL: url };
      for (const name of ["openai/gpt-4.1", "gpt-4.1"])
        expect(resolveModel(name, {}, environment)).toMatchObject({ model: { modelName: "gpt-4.1" } });
      expect(resolveModel("anthropic/claude-sonnet-4-5", {}, environment)).toMatchObject({
        model: { modelName: "claude-sonnet-4-5", provider: { name: "anthropic" } },
      });
      expect(resolveModel("nobody/model", {}, environment).ok).toBe(false);
      const openai = { name: "openai", baseUrlEnv: "OPENAI_BASE_URL", keyEnv: "OPENAI_API_KEY" };
      expect(missingVariables(openai, environment)).toEqual(["OPENAI_API_KEY"]);
    }
    const imitation = { OPENAI_BASE_URL: "https://api.openai.com.example/v1" };
    expect(resolveModel("openai/gpt-4.1", {}, imitation)).toMatchObject({
      model: { modelName: "openai/gpt-4.1" },
    });
  });

  it("assumes a window for an unknown one of a known provider, with lines that settle it", () => {
    const resolved = resolveModel("gpt-4.1-minny", {});
    expect(resolved).toMatchObject({ ok: true, model: { contextWindow: 32_000, maxOutput: 8_192 } });
    const note = resolved.ok ? (resolved.notes[0] ?? "") : "";
    expect(note).toContain("Nearest known: openai/gpt-4.1-mini");
    const config = agentConfigSchema.parse(parse(note.slice(note.indexOf("models:"))));
    expect(resolveModel("gpt-4.1-minny", config.models)).toMatchObject({ ok: true, notes: [] });
  });

  it("suggests no nearest name if none is near", () => {
    const resolved = resolveModel("zzzzzzzzzzzzzzzz", {});
    expect(resolved.ok && resolved.notes[0]).not.toContain("Nearest");
  });

  it("uses the named provider, with the rest of the name as its model", () => {
    expect(resolveModel("anthropic/claude-sonnet-4-5", {})).toMatchObject({
      model: {
        api: "messages",
        modelName: "claude-sonnet-4-5",
        provider: { name: "anthropic", keyEnv: "ANTHROPIC_API_KEY" },
      },
    });
    expect(resolveModel("groq/openai/gpt-oss-120b", {})).toMatchObject({
      model: { api: "chat", modelName: "openai/gpt-oss-120b", provider: { name: "groq" } },
    });
  });

  it("uses the server behind OPENAI_BASE_URL for a provider's model without that provider's key", () => {
    const router = { OPENAI_BASE_URL: "http://x/v1" };
    const claude = "anthropic/claude-sonnet-4-5";
    expect(resolveModel(claude, {}, router)).toMatchObject({
      model: { modelName: claude, provider: { name: "openai" } },
    });
    expect(resolveModel(claude, {}, { ...router, ANTHROPIC_API_KEY: "k" })).toMatchObject({
      model: { provider: { name: "anthropic" } },
    });
  });

  it("prefers a configured provider to a built-in one, field by field", () => {
    const providers = { groq: { baseUrl: "http://gateway/v1" }, acme: { baseUrl: "http://acme/v1" } };
    expect(resolve("groq/x", { models: {}, providers })).toMatchObject({
      model: { provider: { baseUrl: "http://gateway/v1", keyEnv: "GROQ_API_KEY" } },
    });
    expect(resolve("acme/team/x", { models: {}, providers })).toMatchObject({
      model: { api: "chat", modelName: "team/x", provider: { name: "acme", baseUrl: "http://acme/v1" } },
    });
  });

  it("refuses an unknown provider, with the lines to configure it and the nearest names", () => {
    const refused = resolveModel("opanai/gpt-4.1-mini", {});
    expect(refused).toMatchObject({ ok: false, nearest: expect.arrayContaining(["openai/gpt-4.1-mini"]) });
    const message = refused.ok ? "" : refused.message;
    const yaml = message.slice(message.indexOf("providers:"), message.indexOf("\nor set"));
    const { providers } = agentConfigSchema.parse(parse(yaml));
    expect(resolve("opanai/gpt-4.1-mini", { models: {}, providers }).ok).toBe(true);
  });

  it("refuses a model that cannot call tools", () => {
    const refused = resolveModel("gpt-4o", { "gpt-4o": { tools: false } });
    expect(refused).toMatchObject({ ok: false, message: expect.stringContaining("cannot call tools") });
  });

  it("does not accept a name of the prototype as a model", () => {
    expect(resolveModel("__proto__/x", {}).ok).toBe(false);
    expect(resolveModel("constructor/x", {}).ok).toBe(false);
  });

  it("includes the rehearsal model, which costs nothing", () => {
    expect(resolveModel("rehearsal/flashcards", {})).toEqual({
      ok: true,
      isUnlisted: false,
      notes: [],
      model: {
        model: "rehearsal/flashcards",
        modelName: "flashcards",
        provider: { name: "rehearsal", baseUrlEnv: "LONGHAUL_REHEARSAL_URL" },
        contextWindow: 16_000,
        maxOutput: 2_000,
        api: "responses",
        input: ["text"],
      },
    });
  });
});

describe("the summary model", () => {
  const settings = (summaryModel: string, models = {}) =>
    agentConfigSchema.parse({ models, context: { options: { summaryModel } } });

  it("has its own window, wire and longest answer", () => {
    const models = { "acme/small": { contextWindow: 16_000, maxOutput: 2_000, api: "chat" } };
    const resolved = resolveRun(settings("acme/small", models), "gpt-4o", { OPENAI_BASE_URL: "http://x/v1" });
    expect(resolved).toMatchObject({
      ok: true,
      run: {
        model: "openai/gpt-4o",
        contextWindow: 128_000,
        summariser: { model: "acme/small", contextWindow: 16_000, maxOutput: 2_000, api: "chat" },
      },
    });
  });

  it("is refused before anything starts if its provider is unknown", () => {
    const refused = resolveRun(settings("acme/x"), "gpt-4o");
    expect(refused).toMatchObject({
      ok: false,
      message: expect.stringMatching(/summaryModel: The provider acme/),
    });
  });

  it("is the session's own if none or the same is configured", () => {
    const plain = resolveRun(agentConfigSchema.parse({}), "gpt-4o");
    expect(plain.ok && plain.run.summariser).toBeUndefined();
    const same = resolveRun(settings("gpt-4o"), "openai/gpt-4o");
    expect(same.ok && same.run.summariser).toBeUndefined();
  });
});

describe("fallback models", () => {
  const settings = (fallback: string[], more = {}) =>
    agentConfigSchema.parse({ models: { "gpt-4o": { fallback } }, ...more });

  it("are resolved like the session's own, in order", () => {
    const resolved = resolveRun(settings(["gpt-4.1", "groq/x"]), "openai/gpt-4o");
    expect(resolved).toMatchObject({
      ok: true,
      run: { fallback: [{ model: "openai/gpt-4.1" }, { model: "groq/x", provider: { name: "groq" } }] },
    });
  });

  it("are never the model itself", () => {
    expect(resolveRun(settings(["openai/gpt-4o"]), "gpt-4o").ok).toBe(false);
  });

  it("need a price, like all others, if the session's cost is limited", () => {
    const limits = { maxCostUsd: 1 };
    expect(resolveRun(settings(["gpt-4.1"], { limits }), "gpt-4o").ok).toBe(true);
    expect(resolveRun(settings(["groq/x"], { limits }), "gpt-4o")).toMatchObject({
      ok: false,
      message: expect.stringMatching(/price of groq\/x is not known/),
    });
  });

  it("need the price of their service tier as well, or the limit would never be reached", () => {
    const limited = (price?: object) =>
      agentConfigSchema.parse({
        models: { "gpt-4.1": { tier: "flex", ...(price === undefined ? {} : { price }) } },
        limits: { maxCostUsd: 1 },
      });
    expect(resolveRun(limited(), "gpt-4.1")).toMatchObject({
      ok: false,
      message: expect.stringContaining("tiers: {flex: …}"),
    });
    const price = { input: 2, cached: 0.5, output: 8, tiers: { flex: 0.5 } };
    expect(resolveRun(limited(price), "gpt-4.1").ok).toBe(true);
  });
});
