/** Models that cannot call tools: refused before anything starts. */
import { expect, it } from "vitest";
import { agentConfigSchema } from "../../../activities/config/agent-config.ts";
import { publishedCatalogue } from "../../../activities/config/catalogue/catalogue.ts";
import type { ModelConfig } from "../../../activities/config/model-target.ts";
import { resolveModel as resolve } from "../../../activities/config/models.ts";
import { resolveRun } from "../../../activities/config/resolve-run.ts";

const resolveModel = (name: string, models: Record<string, ModelConfig>) =>
  resolve(name, { models, providers: {} });

const unable = Object.entries(publishedCatalogue.models)
  .filter(([, { tools, ends }]) => tools === false && ends === undefined)
  .map(([name]) => name);

it.each(unable)("refuses %s, of which the catalogue knows that it cannot call tools", (name) => {
  expect(resolveModel(name, {})).toMatchObject({
    ok: false,
    message: expect.stringMatching(/cannot call tools, as the catalogue .*nothing was started.*tools: true/),
  });
  expect(resolveModel(name, { [name]: { tools: true } })).toMatchObject({
    ok: true,
    model: { model: name },
  });
  const near = resolveModel(`${name}x`, {});
  expect(near.ok && near.notes[0]).not.toMatch(new RegExp(`${name}[,.]`));
});

it("refuses such a model wherever the agent would ask it, but lets it write summaries", () => {
  const [name = ""] = unable;
  const runOf = (settings: object) => resolveRun(agentConfigSchema.parse(settings), "gpt-4o");
  expect(runOf({ models: { "gpt-4o": { fallback: [name] } } })).toMatchObject({
    ok: false,
    message: expect.stringContaining("fallback"),
  });
  expect(runOf({ delegate: { model: name } })).toMatchObject({ ok: false });
  expect(runOf({ context: { options: { summaryModel: name } } })).toMatchObject({
    ok: true,
    run: { summariser: { model: name } },
  });
});

it("refuses a model whose server says that it cannot call tools", () => {
  const served = { "ollama/gemma3": { tools: false, most: 8_192, from: "http://here" } } as const;
  const facts = { catalogue: publishedCatalogue, now: 0, served };
  const resolved = resolve("ollama/gemma3", { models: {}, providers: {} }, {}, facts);
  expect(resolved).toMatchObject({ ok: false, message: expect.stringContaining("as its server says") });
});
