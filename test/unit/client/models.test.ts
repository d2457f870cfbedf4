import { createServer } from "node:http";
import { expect, it } from "vitest";
import { publishedCatalogue } from "../../../activities/config/catalogue/catalogue.ts";
import { modelRows, modelsText, serverNamed } from "../../../client/commands/models.ts";
import { listen } from "../../support/listen.ts";

const facts = { catalogue: publishedCatalogue, now: Date.parse("2026-11-22") };
const rowsOf = (environment: Record<string, string>, models = {}) =>
  modelRows({ settings: { models, providers: {} }, facts, environment });
const plain = (_look: string, text: string) => text;

it("lists usable models first, and marks the default", () => {
  const rows = rowsOf({ OPENAI_API_KEY: "k" });
  const usable = rows.filter((row) => row.usable);
  expect(usable.length).toBeGreaterThan(10);
  expect(usable.every(({ model }) => model.startsWith("openai/"))).toBe(true);
  expect(rows.slice(0, usable.length)).toEqual(usable);
  expect(rows.filter((row) => row.isDefault).map(({ model }) => model)).toEqual(["openai/gpt-6.1-sol"]);
  expect(rowsOf({}).some((row) => row.usable)).toBe(false);
});

it("omits models that were shut down, and shows the end date of those that end", () => {
  const rows = rowsOf({});
  expect(rows.some(({ model }) => model === "openai/o4-mini")).toBe(false);
  expect(rows.find(({ model }) => model === "openai/gpt-5")?.ends).toBe("2026-12-11");
});

it("merges the configuration over the catalogue, and adds models that only it has", () => {
  const rows = rowsOf({}, { "ollama/qwen": { contextWindow: 8_000 }, "gpt-5.4": { maxOutput: 5_000 } });
  expect(rows[0]).toMatchObject({ model: "ollama/qwen", usable: true, contextWindow: 8_000, price: null });
  expect(rows.find(({ model }) => model === "openai/gpt-5.4")).toMatchObject({
    contextWindow: 1_050_000,
    maxOutput: 5_000,
  });
});

it("shows prices as the providers' lists do", () => {
  const rows = rowsOf({ OPENAI_API_KEY: "k" }).filter(({ model }) => model === "openai/gpt-6.1-sol");
  const [head, line] = modelsText(rows, plain, "2026-11-22").split("\n");
  expect(head).toMatch(/MODEL +WINDOW +OUTPUT +\$ IN +CACHED +OUT/);
  expect(line).toMatch(/^✓ +openai\/gpt-6.1-sol \(default\) +1.1M +128k +2 +0.1 +10 +yes +yes$/);
});

it("explains the mark if it is used", () => {
  const legend = (rows: ReturnType<typeof rowsOf>) =>
    modelsText(rows, plain, "2026-11-22").split("\n").at(-1);
  expect(legend(rowsOf({ OPENAI_API_KEY: "k" }))).toMatch(/^✓ its key is set/);
  expect(legend(rowsOf({}).filter(({ usable }) => !usable))).toMatch(/^Prices in USD/);
});

it("lists what the server of a provider has that is named, and says so if it has nothing", async () => {
  const documents: Readonly<Record<string, unknown>> = {
    "/v1/models": { data: [{ id: "qwen3" }, { id: "embed" }] },
    "/api/v0/models": {
      data: [
        { id: "qwen3", max_context_length: 40_960, loaded_context_length: 8_192 },
        { id: "embed", type: "embeddings" },
      ],
    },
  };
  const server = createServer(({ url = "" }, response) => {
    response.statusCode = url in documents ? 200 : 404;
    response.end(JSON.stringify(documents[url] ?? {}));
  });
  const baseUrl = `http://127.0.0.1:${await listen(server)}/v1`;
  const ask = (filter: string, providers = {}) =>
    serverNamed(filter, { models: { "lmstudio/qwen3": { maxOutput: 2_000 } }, providers }, {});
  expect((await ask("lmstudio", { lmstudio: { baseUrl } }))?.rows).toMatchObject([
    { model: "lmstudio/qwen3", usable: true, contextWindow: 8_192, maxOutput: 2_000 },
  ]);
  expect((await ask("box/q", { box: { baseUrl } }))?.rows).toHaveLength(1);
  expect(await ask("box", { box: { baseUrl: "http://127.0.0.1:1/v1" } })).toMatchObject({
    rows: [],
    found: expect.stringMatching(/^box is asked at http:\/\/127\.0\.0\.1:1\/v1\. No server answers/),
  });
  for (const none of ["", "gpt", "openai", "groq", "__proto__"]) expect(await ask(none)).toBeUndefined();
});
