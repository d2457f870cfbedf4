import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { agentConfigSchema } from "../../../activities/config/agent-config.ts";
import { fullModelName, knownModels, resolveModel, resolveRun } from "../../../activities/config/models.ts";

describe("resolving a model [U21]", () => {
  it("takes a bare name as OpenAI's", () => {
    expect(fullModelName("gpt-4o")).toBe("openai/gpt-4o");
    const resolved = resolveModel("gpt-4o", {});
    expect(resolved).toMatchObject({
      ok: true,
      model: { model: "openai/gpt-4o", contextWindow: 128_000, api: "responses" },
    });
  });

  it("lets configuration win over the table, field by field", () => {
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

  it("takes a model that is only configured, as text and without a price", () => {
    const resolved = resolveModel(
      "local/qwen",
      { "local/qwen": { contextWindow: 32_768, api: "chat" } },
      { OPENAI_BASE_URL: "http://x/v1" },
    );
    expect(resolved).toEqual({
      ok: true,
      model: {
        model: "local/qwen",
        modelName: "local/qwen",
        contextWindow: 32_768,
        maxOutput: 4_096,
        api: "chat",
        input: ["text"],
      },
    });
  });

  it("keeps the name as it was written for a server behind OPENAI_BASE_URL", () => {
    const gptOss = { contextWindow: 131_072, api: "chat" as const };
    const environment = { OPENAI_BASE_URL: "http://x/v1" };
    for (const name of ["openai/gpt-oss-120b", "gpt-oss-120b"]) {
      expect(resolveModel(name, { "gpt-oss-120b": gptOss }, environment)).toMatchObject({
        model: { model: "openai/gpt-oss-120b", modelName: name },
      });
    }
    expect(resolveModel("openai/gpt-4.1", {}).ok && resolveModel("openai/gpt-4.1", {})).not.toHaveProperty(
      "model.modelName",
    );
  });

  it("refuses an unknown one with lines that really make it known, and the nearest names", () => {
    const refused = resolveModel("gpt-4.1-minny", {});
    expect(refused).toMatchObject({ ok: false, nearest: expect.arrayContaining(["openai/gpt-4.1-mini"]) });
    if (refused.ok) return;
    const yaml = refused.message.slice(refused.message.indexOf("models:"));
    const config = agentConfigSchema.parse(parse(yaml));
    expect(resolveModel("gpt-4.1-minny", config.models).ok).toBe(true);
  });

  it("names no nearest one where nothing is near", () => {
    expect(resolveModel("zzzzzzzzzzzzzzzz", {})).toMatchObject({ ok: false, nearest: [] });
  });

  it("refuses another provider's model without OPENAI_BASE_URL", () => {
    const refused = resolveModel("anthropic/claude-3-5-sonnet", {});
    expect(refused).toMatchObject({ ok: false, message: expect.stringContaining("OPENAI_BASE_URL") });
    expect(resolveModel("anthropic/claude-3-5-sonnet", {}, { OPENAI_BASE_URL: "http://x/v1" }).ok).toBe(true);
  });

  it("does not take a name of the prototype for a model", () => {
    expect(resolveModel("__proto__", {}).ok).toBe(false);
    expect(resolveModel("constructor", {}).ok).toBe(false);
  });

  it("knows the rehearsal model, which costs nothing", () => {
    expect(resolveModel("rehearsal/flashcards", {})).toEqual({
      ok: true,
      model: {
        model: "rehearsal/flashcards",
        contextWindow: 16_000,
        maxOutput: 2_000,
        api: "responses",
        input: ["text"],
      },
    });
  });

  it("holds rows that fit together: output within the window, cached never dearer than input", () => {
    for (const [name, model] of Object.entries(knownModels)) {
      expect(model.maxOutput, name).toBeLessThan(model.contextWindow);
      if (model.price !== undefined) expect(model.price.cached, name).toBeLessThanOrEqual(model.price.input);
    }
  });
});

describe("the model that writes summaries", () => {
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

  it("is refused before anything starts where nobody knows it", () => {
    const refused = resolveRun(settings("gpt-5-minni"), "gpt-4o");
    expect(refused).toMatchObject({
      ok: false,
      message: expect.stringMatching(
        /summaryModel: The model openai\/gpt-5-minni is in no table.*gpt-5-mini/s,
      ),
    });
  });

  it("is the session's own where none is named, or the same", () => {
    const plain = resolveRun(agentConfigSchema.parse({}), "gpt-4o");
    expect(plain.ok && plain.run.summariser).toBeUndefined();
    const same = resolveRun(settings("gpt-4o"), "openai/gpt-4o");
    expect(same.ok && same.run.summariser).toBeUndefined();
  });
});
