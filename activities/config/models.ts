/**
 * Models with their windows, as data; prices in USD per million tokens. Published figures, noted from memory in 2026-11:
 * check them before you rely on a bill; `models` in longhaul.yaml overrides them.
 */
import type { AgentConfig, RunConfig } from "./agent-config.ts";
import type { ModelTarget, Price } from "./model-target.ts";
import { type Environment, findProvider, fullModelName } from "./providers.ts";

export interface KnownModel {
  readonly contextWindow: number;
  readonly maxOutput: number;
  /** Largest request, where that is less than the window. */
  readonly maxInput?: number;
  readonly input: RunConfig["input"];
  readonly price?: Price;
  /** It reasons before it answers. */
  readonly thinks?: boolean;
}

const TEXT_AND_IMAGE: KnownModel["input"] = ["text", "image"];
const ALL: KnownModel["input"] = ["text", "image", "pdf"];

function openai(
  contextWindow: number,
  maxOutput: number,
  price: readonly [number, number, number],
  input = ALL,
): KnownModel {
  return {
    contextWindow,
    maxOutput,
    input,
    price: { input: price[0], cached: price[1], output: price[2] },
  };
}

function claude(maxOutput: number, price: readonly [number, number, number]): KnownModel {
  return {
    contextWindow: 200_000,
    maxOutput,
    input: TEXT_AND_IMAGE,
    price: { input: price[0], cached: price[1], output: price[2] },
  };
}

export const knownModels: Readonly<Record<string, KnownModel>> = {
  "openai/gpt-4o": openai(128_000, 16_384, [2.5, 1.25, 10]),
  "openai/gpt-4o-mini": openai(128_000, 16_384, [0.15, 0.075, 0.6]),
  "openai/gpt-4-turbo": openai(128_000, 4_096, [10, 10, 30], TEXT_AND_IMAGE),
  "openai/gpt-4.1": openai(1_047_576, 32_768, [2, 0.5, 8]),
  "openai/gpt-4.1-mini": openai(1_047_576, 32_768, [0.4, 0.1, 1.6]),
  "openai/gpt-4.1-nano": openai(1_047_576, 32_768, [0.1, 0.025, 0.4]),
  "openai/o3": openai(200_000, 100_000, [2, 0.5, 8]),
  "openai/o4-mini": openai(200_000, 100_000, [1.1, 0.275, 4.4]),
  // Both take 922,000 tokens, at twice the price beyond 272,000 of input: a request stops there, so that the bill is
  // true and small; maxInput in longhaul.yaml lets it go on.
  "openai/gpt-6.1-sol": { ...openai(1_050_000, 128_000, [2, 0.1, 10]), maxInput: 272_000 },
  "openai/gpt-6-luna": { ...openai(1_050_000, 128_000, [0.1, 0.01, 0.5]), maxInput: 272_000 },
  "openai/gpt-5": { ...openai(400_000, 128_000, [1.25, 0.125, 10]), maxInput: 272_000 },
  "openai/gpt-5-mini": { ...openai(400_000, 128_000, [0.25, 0.025, 2]), maxInput: 272_000 },
  "openai/gpt-5-nano": { ...openai(400_000, 128_000, [0.05, 0.005, 0.4]), maxInput: 272_000 },
  "anthropic/claude-3-5-sonnet": claude(8_192, [3, 0.3, 15]),
  "anthropic/claude-3-5-haiku": claude(8_192, [0.8, 0.08, 4]),
  "anthropic/claude-3-haiku": claude(4_096, [0.25, 0.03, 1.25]),
  /** Plays a script on this machine; its window is small so that a rehearsal shows compaction. Source: requirement 7.4. */
  "rehearsal/flashcards": { contextWindow: 16_000, maxOutput: 2_000, input: ["text"] },
};

/** What the table knows of a model. @param model `provider/model` */
function findModel(model: string): KnownModel | undefined {
  return Object.hasOwn(knownModels, model) ? knownModels[model] : undefined;
}

/** Of a model in no table. Source: DESIGN 1.3. */
const ASSUMED = { contextWindow: 32_000, maxOutput: 8_192 };

export type ModelResolution =
  /** `notes`: what is assumed of it, with the lines to add to longhaul.yaml. */
  | { readonly ok: true; readonly model: ModelTarget; readonly notes: readonly string[] }
  /** `nearest` are known names, nearest first. */
  | { readonly ok: false; readonly message: string; readonly nearest: readonly string[] };

/**
 * What a run needs to know of a model: configuration first, then the table, then assumptions that are said.
 * @param env of the process: the keys that are there, and OPENAI_BASE_URL
 */
export function resolveModel(
  name: string,
  { models, providers }: Pick<AgentConfig, "models" | "providers">,
  env: Environment = {},
): ModelResolution {
  const written = name.trim();
  const model = fullModelName(written);
  const known = findModel(model);
  const config = Object.entries(models).find(([key]) => fullModelName(key) === model)?.[1] ?? {};
  const nearest = () =>
    nearestModels(model, [...Object.keys(models).map(fullModelName), ...Object.keys(knownModels)]);
  const found = findProvider(written, providers, env);
  if (found === undefined) {
    const near = nearest();
    return { ok: false, message: unknownProvider(model, near), nearest: near };
  }
  if (config.tools === false) {
    const message = `${model} cannot call tools (models.${written}.tools is false), and without tools there is no agent. Take another model.`;
    return { ok: false, message, nearest: [] };
  }
  const { contextWindow: ownWindow, maxOutput: ownOutput, tools: _, fallback: __, ...asked } = config;
  const contextWindow = ownWindow ?? known?.contextWindow ?? ASSUMED.contextWindow;
  const maxOutput =
    ownOutput ?? known?.maxOutput ?? Math.min(ASSUMED.maxOutput, Math.floor(contextWindow / 3));
  const assumes = ownWindow === undefined && known === undefined;
  return {
    ok: true,
    model: {
      ...(known?.price === undefined ? {} : { price: known.price }),
      ...(known?.maxInput === undefined ? {} : { maxInput: known.maxInput }),
      ...(known?.thinks === undefined ? {} : { thinks: known.thinks }),
      ...asked,
      model,
      modelName: found.modelName,
      provider: found.provider,
      contextWindow,
      maxOutput,
      api: config.api ?? found.api,
      input: [...(config.input ?? known?.input ?? ["text" as const])],
    },
    notes: assumes ? [assumed(model, { contextWindow, maxOutput }, nearest())] : [],
  };
}

export type RunResolution =
  | { readonly ok: true; readonly run: RunConfig; readonly notes: readonly string[] }
  | { readonly ok: false; readonly message: string };

/**
 * What a session is to run by: settings with its model, the model that writes its summaries and those that step in for it,
 * resolved. All are refused before anything starts where nobody knows them.
 */
export function resolveRun(settings: AgentConfig, name: string, env: Environment = {}): RunResolution {
  const { context, tools, sandbox, limits } = settings;
  const own = resolveModel(name, settings, env);
  if (!own.ok) return own;
  const notes = [...own.notes];
  const run: RunConfig = { ...own.model, context, tools, sandbox, limits };
  const { summaryModel } = context.options;
  if (summaryModel !== undefined && fullModelName(summaryModel.trim()) !== own.model.model) {
    const other = resolveModel(summaryModel, settings, env);
    if (!other.ok) return { ok: false, message: `context.options.summaryModel: ${other.message}` };
    run.summariser = other.model;
    notes.push(...other.notes);
  }
  const config = Object.entries(settings.models).find(([key]) => fullModelName(key) === own.model.model)?.[1];
  for (const [index, id] of (config?.fallback ?? []).entries()) {
    const other = resolveModel(id, settings, env);
    if (!other.ok) return { ok: false, message: `models.${name}.fallback: ${other.message}` };
    if (other.model.model === own.model.model)
      return { ok: false, message: `models.${name}.fallback[${index}] is the model itself.` };
    run.fallback = [...(run.fallback ?? []), other.model];
    notes.push(...other.notes);
  }
  const unpriced = [own.model, ...(run.summariser ? [run.summariser] : []), ...(run.fallback ?? [])].find(
    ({ price, provider }) => price === undefined && provider?.name !== "rehearsal",
  );
  if (limits.maxCostUsd !== undefined && unpriced !== undefined) {
    const message = `limits.maxCostUsd is set, and the price of ${unpriced.model} is not known: nothing was started. Add models.${unpriced.model}.price: {input, cached, output} (USD per million tokens), or take limits.maxCostUsd away.`;
    return { ok: false, message };
  }
  return { ok: true, run, notes };
}

const hintOf = (nearest: readonly string[]) =>
  nearest.length === 0 ? "" : ` Nearest known: ${nearest.join(", ")}.`;

function unknownProvider(model: string, nearest: readonly string[]): string {
  const provider = model.slice(0, model.indexOf("/"));
  return [
    `The provider ${provider} of ${model} is not known; nothing was started.${hintOf(nearest)} To use it, add to your own longhaul.yaml:`,
    "providers:",
    `  ${provider}:`,
    `    baseUrl: https://api.${provider}.example/v1`,
    `    keyEnv: ${provider.toUpperCase().replaceAll(/[^A-Z0-9]/g, "_")}_API_KEY`,
    "    api: chat               # or responses, messages, gemini",
    "or set OPENAI_BASE_URL (and OPENAI_API_KEY) to a compatible server that has it.",
  ].join("\n");
}

function assumed(model: string, assumption: typeof ASSUMED, nearest: readonly string[]): string {
  return [
    `${model} is in no table: a window of ${assumption.contextWindow} tokens and answers of ${assumption.maxOutput} are assumed, its price is unknown.${hintOf(nearest)} If that is wrong, add to longhaul.yaml:`,
    "models:",
    `  ${model}:`,
    `    contextWindow: ${assumption.contextWindow}`,
    `    maxOutput: ${assumption.maxOutput}`,
  ].join("\n");
}

function nearestModels(model: string, names: readonly string[]): string[] {
  const bare = (name: string) => name.slice(name.indexOf("/") + 1).toLowerCase();
  return [...new Set(names)]
    .map((name) => ({ name, distance: editDistance(bare(name), bare(model)) }))
    .filter(({ name, distance }) => distance <= Math.max(2, Math.floor(bare(name).length / 3)))
    .toSorted((a, b) => a.distance - b.distance)
    .slice(0, 3)
    .map(({ name }) => name);
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
