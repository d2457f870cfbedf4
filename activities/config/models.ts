/**
 * Models with their windows, as data; prices in USD per million tokens. Published figures, noted from memory in 2026-11:
 * check them before you rely on a bill; `models` in longhaul.yaml overrides them.
 */
import type { AgentConfig, RunConfig } from "./agent-config.ts";

export interface KnownModel {
  readonly contextWindow: number;
  readonly maxOutput: number;
  /** Largest request, where that is less than the window. */
  readonly maxInput?: number;
  readonly input: RunConfig["input"];
  readonly api: RunConfig["api"];
  readonly price?: { readonly input: number; readonly cached: number; readonly output: number };
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
    api: "responses",
    price: { input: price[0], cached: price[1], output: price[2] },
  };
}

/** Claude models are reached through a compatible server, which speaks chat completions. */
function claude(maxOutput: number, price: readonly [number, number, number]): KnownModel {
  return {
    contextWindow: 200_000,
    maxOutput,
    input: TEXT_AND_IMAGE,
    api: "chat",
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
  "rehearsal/flashcards": { contextWindow: 16_000, maxOutput: 2_000, input: ["text"], api: "responses" },
};

/** The fields of a RunConfig that a model decides. */
type ResolvedModel = Pick<
  RunConfig,
  "model" | "modelName" | "contextWindow" | "maxOutput" | "maxInput" | "api" | "input" | "headroom" | "price"
>;

export type ModelResolution =
  | { readonly ok: true; readonly model: ResolvedModel }
  /** `message` says what to add to longhaul.yaml; `nearest` are known names, nearest first. */
  | { readonly ok: false; readonly message: string; readonly nearest: readonly string[] };

/** `provider/model`; a bare name is OpenAI's. */
export function fullModelName(name: string): string {
  return name.includes("/") ? name : `openai/${name}`;
}

/**
 * What a run needs to know of a model: configuration first, then the table; neither guesses.
 * @param configured `models` of longhaul.yaml; its keys may be bare names too
 * @param env of the process: another provider than OpenAI needs OPENAI_BASE_URL
 */
export function resolveModel(
  name: string,
  configured: AgentConfig["models"],
  env: Readonly<Record<string, string | undefined>> = {},
): ModelResolution {
  const model = fullModelName(name.trim());
  const known = Object.hasOwn(knownModels, model) ? knownModels[model] : undefined;
  const config = Object.entries(configured).find(([key]) => fullModelName(key) === model)?.[1];
  const contextWindow = config?.contextWindow ?? known?.contextWindow;
  if (contextWindow === undefined) {
    const nearest = nearestModels(model, [
      ...Object.keys(configured).map(fullModelName),
      ...Object.keys(knownModels),
    ]);
    return { ok: false, message: unknownModel(model, nearest), nearest };
  }
  const provider = model.slice(0, model.indexOf("/"));
  if (provider !== "openai" && provider !== "rehearsal" && !env["OPENAI_BASE_URL"]) {
    return {
      ok: false,
      message: `The model ${model} is not OpenAI's own. Set OPENAI_BASE_URL (and OPENAI_API_KEY) to a compatible server that has it, or take one of OpenAI's, such as openai/gpt-4.1.`,
      nearest: [],
    };
  }
  const price = config?.price ?? known?.price;
  const maxInput = config?.maxInput ?? known?.maxInput;
  return {
    ok: true,
    model: {
      model,
      ...(env["OPENAI_BASE_URL"] ? { modelName: name.trim() } : {}),
      contextWindow,
      maxOutput: config?.maxOutput ?? known?.maxOutput ?? Math.min(4_096, Math.floor(contextWindow / 4)),
      api: config?.api ?? known?.api ?? "responses",
      input: [...(config?.input ?? known?.input ?? ["text" as const])],
      ...(maxInput === undefined ? {} : { maxInput }),
      ...(config?.headroom === undefined ? {} : { headroom: config.headroom }),
      ...(price === undefined ? {} : { price }),
    },
  };
}

export type RunResolution =
  | { readonly ok: true; readonly run: RunConfig }
  | { readonly ok: false; readonly message: string };

/**
 * What a session is to run by: settings with its model, and the model that writes its summaries, resolved. Both are
 * refused before anything starts where nobody knows them.
 */
export function resolveRun(
  settings: AgentConfig,
  name: string,
  env: Readonly<Record<string, string | undefined>> = {},
): RunResolution {
  const { context, tools, sandbox, limits, models } = settings;
  const own = resolveModel(name, models, env);
  if (!own.ok) return own;
  const run = { ...own.model, context, tools, sandbox, limits };
  const { summaryModel } = context.options;
  if (summaryModel === undefined || fullModelName(summaryModel.trim()) === own.model.model)
    return { ok: true, run };
  const other = resolveModel(summaryModel, models, env);
  if (!other.ok) return { ok: false, message: `context.options.summaryModel: ${other.message}` };
  const { model, modelName, contextWindow, maxOutput, api } = other.model;
  const summariser = {
    model,
    ...(modelName === undefined ? {} : { modelName }),
    contextWindow,
    maxOutput,
    api,
  };
  return { ok: true, run: { ...run, summariser } };
}

function unknownModel(model: string, nearest: readonly string[]): string {
  const hint = nearest.length === 0 ? "" : ` Nearest known: ${nearest.join(", ")}.`;
  return [
    `The model ${model} is in no table and not configured; nothing was started.${hint} To use it, add to longhaul.yaml:`,
    "models:",
    `  ${model}:`,
    "    contextWindow: 128000   # tokens, as its provider states",
    "    maxOutput: 8192",
    "    api: responses          # or chat, for servers without the Responses API",
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
