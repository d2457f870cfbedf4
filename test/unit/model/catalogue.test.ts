import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import {
  type Catalogue,
  catalogueSchema,
  findInCatalogue,
  publishedCatalogue,
  loadCatalogue,
} from "../../../activities/config/catalogue/catalogue.ts";
import { costUsd } from "../../../activities/config/cost.ts";
import { resolveModel, DEFAULT_MODEL } from "../../../activities/config/models.ts";
import { emptyFolder } from "../../support/empty-folder.ts";

const file = new URL("../../../activities/config/catalogue/models.json", import.meta.url);
const at = (day: string) => ({ catalogue: publishedCatalogue, now: Date.parse(day) });
const resolve = (model: string, day: string, environment = {}, settings = {}) =>
  resolveModel(model, { models: {}, providers: {}, ...settings }, environment, at(day));

describe("the catalogue of models", () => {
  it("matches its schema, and is small enough to read at each start", () => {
    expect(catalogueSchema.parse(publishedCatalogue)).toEqual(publishedCatalogue);
    expect(statSync(file).size).toBeLessThan(250_000);
  });

  it("has what the file beside the public data says", () => {
    const text = readFileSync(new URL("../../../scripts/catalogue-supplement.yaml", import.meta.url), "utf8");
    const { models } = parse(text, { schema: "core" }) as { models: Record<string, Record<string, unknown>> };
    for (const [name, facts] of Object.entries(models)) {
      const { contextWindow, maxInput, maxOutput, input, ends, tools } = facts;
      const said = { contextWindow, maxInput, maxOutput, input, ends, tools };
      const given = Object.fromEntries(Object.entries(said).filter(([, value]) => value !== undefined));
      expect(publishedCatalogue.models[name], name).toMatchObject(given);
    }
  });

  it("has consistent rows", () => {
    for (const [name, model] of Object.entries(publishedCatalogue.models)) {
      const { contextWindow, maxOutput, maxInput = 0, price } = model;
      expect(maxOutput, name).toBeLessThan(contextWindow);
      expect(maxInput, name).toBeLessThan(contextWindow);
      expect(model.input, name).toContain("text");
      if (price === undefined) continue;
      expect(price.cached, name).toBeLessThanOrEqual(price.input);
      expect(price.above?.input ?? Infinity, name).toBeGreaterThanOrEqual(price.input);
    }
  });

  it("has a model for each built-in provider with a list", () => {
    for (const provider of ["openai", "anthropic", "google", "deepseek", "groq", "mistral", "openrouter"])
      expect(Object.keys(publishedCatalogue.models).some((name) => name.startsWith(`${provider}/`))).toBe(
        true,
      );
  });

  it("treats Azure's models as OpenAI's, and finds a snapshot by the name before its date", () => {
    const plain = findInCatalogue(publishedCatalogue, "openai/gpt-5.4");
    expect(plain).toBeDefined();
    expect(findInCatalogue(publishedCatalogue, "azure/gpt-5.4")).toBe(plain);
    expect(findInCatalogue(publishedCatalogue, "openai/gpt-5.4-2026-03-05")).toBe(plain);
    expect(findInCatalogue(publishedCatalogue, "openai/gpt-5.4-x")).toBeUndefined();
    expect(findInCatalogue(publishedCatalogue, "constructor")).toBeUndefined();
  });

  it.each([
    ["openai/gpt-5.6-sol", { input: 400_000, cached: 0, output: 0 }, 3.2],
    ["openai/gpt-5.4", { input: 272_001, cached: 0, output: 1_000 }, 1.3825],
    ["openai/gpt-6.1-sol", { input: 100_000, cached: 80_000, cacheWrite: 10_000, output: 1_000 }, 0.063],
    [
      "anthropic/claude-opus-5",
      { input: 100_000, cached: 50_000, cacheWrite: 50_000, output: 2_000 },
      0.3875,
    ],
    ["deepseek/deepseek-v4-flash", { input: 1_000_000, cached: 900_000, output: 10_000 }, 0.0474],
  ])("prices a call of %s by the provider's list", (model, usage, usd) => {
    const price = findInCatalogue(publishedCatalogue, model)?.price;
    expect(costUsd(price, usage)).toBeCloseTo(usd, 4);
  });

  it("stops requests if more input makes them dearer, unless that is configured", () => {
    expect(resolve("gpt-6.1-sol", "2026-11-22")).toMatchObject({
      model: { contextWindow: 1_050_000, maxInput: 272_000, thinks: true },
    });
    const models = { "gpt-6.1-sol": { maxInput: 922_000 } };
    expect(resolve("gpt-6.1-sol", "2026-11-22", {}, { models })).toMatchObject({
      model: { maxInput: 922_000 },
    });
  });
});

describe("models with an end date", () => {
  it("are refused after it, with available ones of the provider", () => {
    const refused = resolve("o4-mini", "2026-11-22");
    expect(refused).toMatchObject({ ok: false, message: expect.stringContaining("shut down on 2026-10-23") });
    if (refused.ok) return;
    expect(refused.nearest).toHaveLength(3);
    for (const name of refused.nearest) expect(resolve(name, "2026-11-22")).toMatchObject({ ok: true });
    expect(resolve("deepseek/deepseek-chat", "2026-11-22").ok).toBe(false);
    expect(resolve("anthropic/claude-3-haiku", "2026-11-22").ok).toBe(false);
  });

  it("are allowed on a custom server that still has them", () => {
    expect(resolve("o4-mini", "2026-11-22", { OPENAI_BASE_URL: "http://x/v1" }).ok).toBe(true);
    const models = { "o4-mini": { contextWindow: 200_000 } };
    expect(resolve("o4-mini", "2026-11-22", {}, { models }).ok).toBe(true);
    const providers = { deepseek: { baseUrl: "http://x/v1" } };
    expect(resolve("deepseek/deepseek-chat", "2026-11-22", {}, { providers }).ok).toBe(true);
  });

  it("are announced within 60 days of it", () => {
    expect(resolve("gpt-5", "2026-11-22")).toMatchObject({
      ok: true,
      notes: [expect.stringContaining("shut down on 2026-12-11 (in 19 days)")],
    });
    expect(resolve("gpt-5", "2026-10-01")).toMatchObject({ ok: true, notes: [] });
    expect(resolve("gpt-5", "2026-12-11").ok).toBe(false);
  });

  it("include the default model only beyond 2027, as far as is announced", () => {
    expect(resolve(DEFAULT_MODEL, "2027-12-31")).toMatchObject({ ok: true, notes: [] });
  });
});

describe("a newer file next to the catalogue", () => {
  const written = (content: unknown) => {
    const folder = emptyFolder();
    const path = join(folder, "models.json");
    writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content));
    return path;
  };

  it("overrides it model by model", () => {
    const newer: Catalogue = {
      about: "",
      dated: "2027-01-01",
      publicData: "2027-01-01",
      models: { "openai/gpt-7": { contextWindow: 2_000_000, maxOutput: 128_000, input: ["text"] } },
    };
    const catalogue = loadCatalogue(written(newer));
    expect(findInCatalogue(catalogue, "openai/gpt-7")?.contextWindow).toBe(2_000_000);
    expect(findInCatalogue(catalogue, "openai/gpt-5.4")).toBeDefined();
    expect(loadCatalogue(undefined)).toBe(publishedCatalogue);
  });

  it.each([["not json"], [{ models: {} }]])("is refused by name if it is invalid: %o", (content) => {
    const path = written(content);
    expect(() => loadCatalogue(path)).toThrow(path);
  });
});
