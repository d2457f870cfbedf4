/** Models that cannot call tools: refused before anything starts, unless a person chose to use them without. */
import { expect, it } from "vitest";
import { agentConfigSchema } from "../../../activities/config/agent-config.ts";
import { publishedCatalogue } from "../../../activities/config/catalogue/catalogue.ts";
import type { ModelConfig } from "../../../activities/config/model-target.ts";
import { resolveModel as resolve } from "../../../activities/config/models.ts";
import { resolveRun } from "../../../activities/config/resolve-run.ts";
import { systemPrompt } from "../../../activities/config/system-prompt.ts";
import { buildPrefix } from "../../../activities/context/request.ts";
import { toolsToTake } from "../../../activities/step/catalogues.ts";
import { toolRegistry } from "../../../activities/tools/index.ts";

const resolveModel = (name: string, models: Record<string, ModelConfig>) =>
  resolve(name, { models, providers: {} });

const unable = Object.entries(publishedCatalogue.models)
  .filter(([, { tools, ends }]) => tools === false && ends === undefined)
  .map(([name]) => name);

it.each(unable)("refuses %s, of which the catalogue knows that it cannot call tools", (name) => {
  expect(resolveModel(name, {})).toMatchObject({
    ok: false,
    message: expect.stringMatching(
      /cannot call tools, as the catalogue .*nothing was started.*tools: none.*tools: true/,
    ),
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

it.each([...unable, "gpt-4o", "acme/own"])("starts %s without tools where a person says so", (name) => {
  const settings = agentConfigSchema.parse({
    models: { [name]: { tools: "none" } },
    providers: { acme: { baseUrl: "http://here/v1", api: "chat" } },
    mcpServers: { docs: { url: "https://docs.example/mcp", required: true } },
  });
  const resolved = resolveRun(settings, name);
  if (!resolved.ok) throw new Error(resolved.message);
  const config = { ...resolved.run, plan: true, outputSchema: { type: "object" } };
  const skills = [{ name: "release", description: "how to release", path: "SKILL.md" }];
  const system = systemPrompt({ config, instructions: "Run `make`.", skills });
  expect(system).not.toMatch(/tool|\b(bash|root|sudo|exit_plan|read_file|SKILL)\b/i);
  expect(system).toContain("Run `make`.");
  for (const one of toolRegistry.keys()) expect(system).not.toMatch(new RegExp(`\\b${one}\\b`));
  expect(buildPrefix({ system, config }).tools).toEqual([]);
  expect(toolsToTake({ config }, true)).toBeUndefined();
});

it("names the settings in its refusal", () => {
  const [name = ""] = unable;
  const refused = resolveModel(name, {});
  expect(refused.ok ? "" : refused.message).toContain(`set models.${name}.tools: none in longhaul.yaml`);
  expect(resolveModel("gpt-4o", { "gpt-4o": { tools: false } })).toMatchObject({
    message: expect.stringContaining("models.openai/gpt-4o.tools: none"),
  });
});

it("refuses a fallback without tools for a model that has them, not for one without", () => {
  const [name = ""] = unable;
  const runOf = (tools: unknown) =>
    resolveRun(
      agentConfigSchema.parse({
        models: { "gpt-4o": { tools, fallback: [name] }, [name]: { tools: "none" } },
      }),
      "gpt-4o",
    );
  expect(runOf(true)).toMatchObject({ ok: false, message: expect.stringContaining("without tools") });
  expect(runOf("none")).toMatchObject({ ok: true, run: { noTools: true, fallback: [{ noTools: true }] } });
});
