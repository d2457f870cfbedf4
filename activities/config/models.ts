/**
 * Facts about a model: from the configuration, otherwise the catalogue, otherwise assumptions that are
 * reported; and what a person should know of its window before the start.
 */
import type { AgentConfig } from "./agent-config.ts";
import {
  type Catalogue,
  type CatalogueModel,
  findInCatalogue,
  isServed,
  loadCatalogue,
  publishedCatalogue,
  shutdownNote,
} from "./catalogue/catalogue.ts";
import { cleanText } from "../text/clean.ts";
import { cutChars } from "../text/cut.ts";
import { editDistance } from "../text/lists.ts";
import type { ModelTarget } from "./model-target.ts";
import { makersName } from "./presets.ts";
import { type Environment, findProvider, fullModelName, hasCompatibleServer } from "./providers.ts";

/** The model of a session that names none, if there is a key. Source: decision 0036. */
export const DEFAULT_MODEL = "gpt-6.1-sol";
/** Plays a fixed script if no model is available. */
export const REHEARSAL_MODEL = "rehearsal/flashcards";

/** The default model if OpenAI's key or a compatible server is configured; otherwise undefined. */
export function defaultModel(environment: Readonly<Record<string, string | undefined>>): string | undefined {
  const isSet = (name: string) => (environment[name]?.trim() ?? "") !== "";
  return isSet("OPENAI_API_KEY") || isSet("OPENAI_BASE_URL") ? DEFAULT_MODEL : undefined;
}

/** The known facts about models, and the time that they apply to. */
export interface ModelFacts {
  readonly catalogue: Catalogue;
  readonly now: number;
  /** Windows that servers report for models missing from the catalogue, by `provider/model`. */
  readonly served?: Readonly<Record<string, ServedWindow>> | undefined;
}

/** The known model facts, as of now. @throws as `loadCatalogue` */
export function currentModelFacts(file: string | undefined): ModelFacts {
  return { catalogue: loadCatalogue(file), now: Date.now() };
}

/** Facts as of the day on which the catalogue was made. */
export const publishedFacts: ModelFacts = {
  catalogue: publishedCatalogue,
  now: Date.parse(publishedCatalogue.dated),
};

/** Plays a script on this machine; its window is small so that a rehearsal shows compaction. Source: requirement 7.4. */
const REHEARSAL: CatalogueModel = { contextWindow: 16_000, maxOutput: 2_000, input: ["text"] };

/** @param model `provider/model` */
function findModel(model: string, catalogue: Catalogue): CatalogueModel | undefined {
  return model === "rehearsal/flashcards" ? REHEARSAL : findInCatalogue(catalogue, model);
}

/**
 * If a whole request gets dearer above some input size, requests stay below that size to save cost; `maxInput` in
 * longhaul.yaml raises the limit. Source: decision 0036.
 */
function maxInputOf({ maxInput, price }: CatalogueModel): number | undefined {
  const dearFrom = price?.above?.tokens;
  return dearFrom === undefined ? maxInput : Math.min(dearFrom, maxInput ?? dearFrom);
}

/** For a model missing from the catalogue. Chosen: the smallest sizes that agents work well with. */
const ASSUMED = { contextWindow: 32_000, maxOutput: 8_192 };
/** Output limit of such a model once thinking has used up the assumed one. Chosen: four times as much. */
const ASSUMED_MORE = 32_768;

type ModelSettings = AgentConfig["models"][string];

function settingsOf(models: AgentConfig["models"], model: string): ModelSettings {
  return Object.entries(models).find(([key]) => fullModelName(key) === model)?.[1] ?? {};
}

/** Whether requests go to a server other than the provider's: it may still serve a model that the provider has shut down. */
function hasOwnServer(provider: string, providers: AgentConfig["providers"], env: Environment): boolean {
  return Boolean(providers[provider]?.baseUrl) || (provider === "openai" && hasCompatibleServer(env));
}

/** In tokens: the configured sizes, otherwise the catalogue's, otherwise the server's, otherwise assumptions. */
function sizesOf(
  own: ModelSettings,
  known: CatalogueModel | undefined,
  served: ServedWindow | undefined,
): { contextWindow: number; maxOutput: number; moreOutput?: number } {
  const contextWindow =
    own.contextWindow ??
    known?.contextWindow ??
    served?.contextWindow ??
    Math.min(ASSUMED.contextWindow, served?.most ?? ASSUMED.contextWindow);
  const maxOutput =
    own.maxOutput ?? known?.maxOutput ?? Math.min(ASSUMED.maxOutput, Math.floor(contextWindow / 3));
  // For a model missing from the catalogue, nothing is known beyond a limit that a person has set.
  const moreOutput =
    known?.maxOutput ?? own.maxOutput ?? Math.min(ASSUMED_MORE, Math.floor(contextWindow / 2));
  return { contextWindow, maxOutput, moreOutput: moreOutput > maxOutput ? moreOutput : undefined };
}

/** The catalogue's facts about a model, apart from its sizes; a model missing from it is assumed to take text. */
function knownFacts(
  known: CatalogueModel | undefined,
): Pick<ModelTarget, "price" | "maxInput" | "thinks" | "input"> {
  if (known === undefined) return { input: ["text"] };
  const { price, thinks, input } = known;
  const maxInput = maxInputOf(known);
  return {
    input: [...input],
    price,
    maxInput,
    thinks,
  };
}

export type ModelResolution =
  /**
   * `notes`: what is assumed, with the lines to add to longhaul.yaml, and what is too little; `isUnlisted`: only its server can
   * say more about it.
   */
  | {
      readonly ok: true;
      readonly model: ModelTarget;
      readonly notes: readonly string[];
      readonly isUnlisted: boolean;
    }
  /** `nearest` are known names, nearest first. */
  | { readonly ok: false; readonly message: string; readonly nearest: readonly string[] };

/** What knows that a model cannot call tools; undefined if nothing does, or a person says that it can or need not. */
function withoutTools(
  own: ModelSettings["tools"],
  known: CatalogueModel | undefined,
  served: ServedWindow | undefined,
): "settings" | "catalogue" | "server" | undefined {
  if (own !== undefined) return own === false ? "settings" : undefined;
  if (known?.tools === false) return "catalogue";
  return served?.tools === false ? "server" : undefined;
}

function noTools(model: string, known: "settings" | "catalogue" | "server"): string {
  const needs = `and the agent needs tools; nothing was started. Choose another model. If you only want its answers in text, set models.${model}.tools: none in longhaul.yaml: its sessions then have no tools.`;
  if (known === "settings") return `${model} cannot call tools (models.${model}.tools is false), ${needs}`;
  const source = known === "catalogue" ? "as the catalogue of models says" : "as its server says";
  return `${model} cannot call tools, ${source}, ${needs} If it can call tools, set models.${model}.tools: true.`;
}

/**
 * What a run needs to know about a model: from configuration, then the catalogue, then assumptions that are reported.
 * @param env of the process: its keys, and OPENAI_BASE_URL
 * @param needs whether it must be able to call tools, as the agent's models must; one that only writes summaries need not
 */
export function resolveModel(
  name: string,
  { models, providers }: Pick<AgentConfig, "models" | "providers">,
  env: Environment = {},
  { needs = "tools", ...facts }: ModelFacts & { readonly needs?: "tools" | "text" } = publishedFacts,
): ModelResolution {
  const written = name.trim();
  const model = fullModelName(written);
  if (!isModelName(model)) return { ok: false, message: noModelName(written), nearest: [] };
  const config = settingsOf(models, model);
  const nearest = () =>
    nearestModels(model, [...Object.keys(models).map(fullModelName), ...servedModels(facts)]);
  const resolved = findProvider(written, providers, env);
  if (resolved === undefined) {
    const near = nearest();
    return { ok: false, message: unknownProvider(model, near), nearest: near };
  }
  const makers = makersName(resolved.provider.preset, resolved.modelName);
  const known =
    findModel(model, facts.catalogue) ??
    (makers === undefined ? undefined : findModel(makers, facts.catalogue));
  const unable = needs === "tools" ? withoutTools(config.tools, known, facts.served?.[model]) : undefined;
  if (unable !== undefined) return { ok: false, message: noTools(model, unable), nearest: [] };
  const { name: provider } = resolved.provider;
  const isMakers = resolved.provider.preset === undefined && !hasOwnServer(provider, providers, env);
  const isGone = isMakers && known !== undefined && !isServed(known, facts.now);
  if (isGone && config.contextWindow === undefined) {
    const near = livingModels(model, facts);
    return { ok: false, message: shutDown(model, known, near), nearest: near };
  }
  const fromCatalogue = knownFacts(known);
  const { tools, fallback: __, api = resolved.api, input = fromCatalogue.input, ...asked } = config;
  const served = facts.served?.[model];
  const sizes = sizesOf(config, known, served);
  const isUnlisted = known === undefined;
  const isAssumed = config.contextWindow === undefined && isUnlisted;
  const mayBeChat = !isMakers && provider === "openai" && api === "responses";
  const ending = known && isMakers ? shutdownNote(model, known, facts.now) : undefined;
  return {
    ok: true,
    model: {
      ...fromCatalogue,
      ...asked,
      model,
      modelName: resolved.modelName,
      provider: resolved.provider,
      ...sizes,
      api,
      input,
      noTools: tools === "none" ? true : undefined,
    },
    isUnlisted,
    notes: [
      ...(isAssumed ? [assumed({ model, sizes, served, hint: hintOf(nearest()), mayBeChat })] : []),
      ...(needs === "text" || tools === "none" ? [] : tooLittle(model, sizes, served)),
      ...(ending === undefined ? [] : [ending]),
    ],
  };
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

function shutDown(model: string, { ends }: CatalogueModel, living: readonly string[]): string {
  const when = ends === "gone" ? "" : ` on ${ends}`;
  const others = living.length === 0 ? "" : ` Models that are served: ${living.join(", ")}.`;
  return `${model} was shut down${when}; nothing was started.${others} If a server of your own still has it, set its contextWindow in models.${model} of longhaul.yaml.`;
}

function servedModels({ catalogue, now }: ModelFacts): string[] {
  return Object.entries(catalogue.models).flatMap(([name, model]) =>
    isServed(model, now) && model.tools !== false ? [name] : [],
  );
}

const bare = (name: string) => name.slice(name.indexOf("/") + 1).toLowerCase();

/** Models of the same provider that are still served, the most similar name first. */
function livingModels(model: string, facts: ModelFacts): string[] {
  const provider = model.slice(0, model.indexOf("/") + 1);
  return servedModels(facts)
    .filter((name) => name.startsWith(provider))
    .toSorted((a, b) => editDistance(bare(a), bare(model)) - editDistance(bare(b), bare(model)))
    .slice(0, 3);
}

function nearestModels(model: string, names: readonly string[]): string[] {
  return [...new Set(names)]
    .map((name) => ({ name, distance: editDistance(bare(name), bare(model)) }))
    .filter(({ name, distance }) => distance <= Math.max(2, Math.floor(bare(name).length / 3)))
    .toSorted((a, b) => a.distance - b.distance)
    .slice(0, 3)
    .map(({ name }) => name);
}

/** Longest full name. Chosen; the ARNs of Bedrock have up to 150. */
const MAX_NAME_CHARS = 200;

const isModelName = (model: string): boolean =>
  model.length <= MAX_NAME_CHARS && /^[^/]+\/.+$/.test(model) && cleanText(model) === model;

const noModelName = (written: string): string =>
  `${JSON.stringify(cutChars(written, 80))} cannot be a model: its name is provider/model, of at most ${MAX_NAME_CHARS} characters.`;

/** Servers on which a person chooses a model's window when the server or the model is started. */
export type Runner = "ollama" | "lmstudio" | "llamacpp";

/** A model's window as its server reports it. */
export interface ServedWindow {
  /** Tokens that the server currently serves it with. */
  readonly contextWindow?: number | undefined;
  /** Tokens that the model supports. */
  readonly most?: number | undefined;
  /** False: the server says that the model cannot call tools. */
  readonly tools?: false | undefined;
  /** Its kind, if a person chooses windows there. */
  readonly runner?: Runner | undefined;
  /** The server's address. */
  readonly from: string;
}

interface Sizes {
  readonly contextWindow: number;
  readonly maxOutput: number;
}

/** What gives a model a window of so many tokens at its server. Sources: the servers' own manuals. */
export function moreRoom(runner: Runner, tokens: number): string {
  if (runner === "ollama")
    return `Give it more: start Ollama with OLLAMA_CONTEXT_LENGTH=${tokens} (ollama serve), or set PARAMETER num_ctx ${tokens} in the model's Modelfile. Ollama serves 4096 until told otherwise, and cuts longer requests without an error.`;
  if (runner === "lmstudio")
    return `Give it more: load the model with a context length of ${tokens} (lms load --context-length ${tokens}). LM Studio cuts longer requests without an error.`;
  return `Give it more: start llama-server with --ctx-size ${tokens} for each slot (--parallel 1 gives one slot all of it).`;
}

interface Assumption {
  readonly model: string;
  readonly sizes: Sizes;
  readonly served: ServedWindow | undefined;
  /** Of names that are known and nearly the same; empty, or begins with a blank. */
  readonly hint: string;
  /** Whether the server may lack `/responses`. */
  readonly mayBeChat: boolean;
}

/** What is assumed of a model that is in no table, with the lines to add to longhaul.yaml. */
function assumed({ model, sizes, served, hint, mayBeChat }: Assumption): string {
  const { contextWindow, maxOutput } = sizes;
  const { runner, most, contextWindow: servedWindow } = served ?? {};
  const isLoadedLater = servedWindow === undefined && runner !== undefined;
  const told =
    servedWindow === undefined
      ? `${served === undefined || most === undefined ? "" : `its server ${served.from} says that the model supports ${most} tokens, but not how many it is served with; `}a window of ${contextWindow} tokens and answers of ${maxOutput} are assumed`
      : `its server ${served?.from} gives it a window of ${servedWindow} tokens; answers of ${maxOutput} are assumed`;
  return [
    `${model} is in no table: ${told}, its price is unknown.${servedWindow === undefined ? hint : ""}${isLoadedLater ? ` The server is asked again once it has loaded the model. ${moreRoom(runner, contextWindow)}` : ""} If that is wrong, add to longhaul.yaml:`,
    "models:",
    `  ${model}:`,
    // What is written there changes nothing at a server that has not loaded the model.
    ...(isLoadedLater ? [] : [`    contextWindow: ${contextWindow}`]),
    `    maxOutput: ${maxOutput}`,
    ...(mayBeChat ? ["    api: chat               # if the server has no /responses"] : []),
  ].join("\n");
}

/** Instructions and tools of a session without settings of its own, with what templates add. A test holds it to their size. */
export const USUAL_PREFIX = 2_900;
/** An answer, and then the least that a conversation needs. */
const ANSWER_ROOM = 4_000;
const LEAST_ROOM = 4_000;
/** A window in which small tasks work well. */
const ENOUGH_WINDOW = 32_768;

/** What a person should know of a window before the start: that the server has less than is configured, or that it is small. */
export function tooLittle(
  model: string,
  { contextWindow, maxOutput }: Sizes,
  { runner, contextWindow: servedWindow, most = ENOUGH_WINDOW, from = "" }: Partial<ServedWindow> = {},
): string[] {
  const real = runner === undefined ? contextWindow : Math.min(contextWindow, servedWindow ?? contextWindow);
  const room = real - USUAL_PREFIX - Math.min(ANSWER_ROOM, maxOutput);
  const enough = Math.max(contextWindow, Math.min(most, ENOUGH_WINDOW));
  const fix = runner === undefined ? "Use a model or a server with more." : moreRoom(runner, enough);
  const less =
    real < contextWindow
      ? `${from} now runs ${model} with a window of ${real} tokens, and ${contextWindow} are configured (models.${model}.contextWindow)`
      : `${model} has a window of ${real} tokens`;
  if (room >= LEAST_ROOM) return real < contextWindow ? [`${less}. ${fix}`] : [];
  const left =
    room > 0 ? `only some ${room} are left for the conversation` : "nothing is left for the conversation";
  return [`${less}: beside the agent's instructions and tools, and an answer, ${left}. ${fix}`];
}
