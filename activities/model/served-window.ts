/**
 * The window with which a server runs a model. Ollama and LM Studio load a model with the first request, often with a small part
 * of its window, and cut off the beginning of longer requests without an error; so the window is asked along with answers.
 */
import { isIP } from "node:net";
import { isPublicAddress } from "../config/addresses.ts";
import { moreRoom, type Runner } from "../config/models.ts";
import { readJson } from "../process/bounded-body.ts";
import type { Fetch } from "../process/outgoing-fetch.ts";
import type { Endpoint } from "./endpoint.ts";
import { type ModelAnswer, ModelError, type ModelRequest } from "./model.ts";

export interface ServerFacts {
  readonly runner: Runner;
  /** Tokens of the window in use; undefined before the model is loaded. */
  readonly contextWindow?: number | undefined;
  /** Tokens that the model supports. */
  readonly most?: number | undefined;
  /** How many requests it answers at once, if those may share the window. */
  readonly slots?: number | undefined;
  /** False: its chat template has no place for tools. */
  readonly tools?: false | undefined;
}

/** Gets a JSON document; undefined if there is none. */
type GetJson = (path: string) => Promise<unknown>;

/** Documents that exist on one kind of server each. */
export interface RunnerDocuments {
  readonly props: unknown;
  readonly loaded: unknown;
  readonly studio: unknown;
}

/**
 * Sources: llama.cpp's tools/server/README.md; Ollama's docs/api.md; LM Studio's REST API v0.
 * @param get of a path, from the server's root
 * @param model of a llama.cpp that routes, which would load it for the question
 */
export async function runnerDocuments(get: GetJson, model?: string): Promise<RunnerDocuments> {
  const query = model === undefined ? "" : `?model=${encodeURIComponent(model)}&autoload=false`;
  const paths = [`/props${query}`, "/api/ps", "/api/v0/models"];
  const [props, loaded, studio] = await Promise.all(paths.map(get));
  return { props, loaded, studio };
}

/** What a server of these kinds says about a model. @returns undefined for another kind of server */
export function runnerFacts(
  { props, loaded, studio }: RunnerDocuments,
  model: string,
): ServerFacts | undefined {
  const settings = toFields(props)["default_generation_settings"];
  if (settings !== undefined) {
    const caps = toFields(toFields(props)["chat_template_caps"]);
    const tools = caps["supports_tools"] === false ? { tools: false as const } : {};
    const slots = count(toFields(props)["total_slots"]);
    return {
      runner: "llamacpp",
      contextWindow: count(toFields(settings)["n_ctx"]),
      slots: slots === undefined || slots < 2 ? undefined : slots,
      ...tools,
    };
  }
  const running = toFields(loaded)["models"];
  if (Array.isArray(running)) {
    const loadedModel = running.map(toFields).find(({ name }) => isSameModel(name, model));
    return { runner: "ollama", contextWindow: count(loadedModel?.["context_length"]) };
  }
  const listed = toFields(studio)["data"];
  if (!Array.isArray(listed)) return undefined;
  const entry = listed.map(toFields).find(({ id }) => isSameModel(id, model));
  return {
    runner: "lmstudio",
    contextWindow: count(entry?.["loaded_context_length"]),
    most: count(entry?.["max_context_length"]),
    tools: entry?.["type"] === "embeddings" ? false : undefined,
  };
}

/** Ollama's `latest` may be omitted. */
export const isSameModel = (listed: unknown, name: string): boolean =>
  listed === name || listed === `${name}:latest`;

/** Chosen: a server that is asked gives small documents at once. */
const ASK_MS = 1_000;
/** Chosen: a server may be started again with another window. */
const KEPT_MS = 10 * 60_000;

type Target = ModelRequest["target"];

/** What servers of this machine and its network said lately, for one process. */
export class ServedWindows {
  readonly #asked = new Map<
    string,
    { readonly untilMs: number; readonly facts: Promise<ServerFacts | undefined> }
  >();

  /**
   * Compares an answer's request with the window in use.
   * @returns the answer, with that window if it is smaller than the assumed one
   * @throws ModelError (overflow) if the request was larger: the model did not see all of it
   */
  async check(
    answer: ModelAnswer,
    { target, estimatedTokens = 0 }: Pick<ModelRequest, "target" | "estimatedTokens">,
    endpoint: Endpoint,
    send: Fetch,
  ): Promise<ModelAnswer> {
    if (!mayBeRunner(target, endpoint)) return answer;
    const { runner, contextWindow: servedWindow } = (await this.#ask(endpoint, send)) ?? {};
    if (runner === undefined || servedWindow === undefined) return answer;
    if (servedWindow >= target.contextWindow) return answer;
    const size = Math.max(estimatedTokens, answer.usage?.input ?? 0);
    const has = `${new URL(endpoint.baseUrl ?? "").host} runs ${endpoint.modelId} with a window of ${servedWindow} tokens`;
    const fix = moreRoom(runner, target.contextWindow);
    if (size <= servedWindow)
      return { ...answer, served: { contextWindow: servedWindow, message: `${has}. ${fix}` } };
    const message = `${has}, and the request has about ${size}: what did not fit was cut off, so the answer does not count. ${fix}`;
    throw new ModelError(message, { class: "overflow", servedWindow, isAsked: true, heard: true });
  }

  #ask(endpoint: Endpoint, send: Fetch): Promise<ServerFacts | undefined> {
    const now = performance.now();
    const key = `${endpoint.baseUrl ?? ""}\n${endpoint.modelId}`;
    const known = this.#asked.get(key);
    if (known !== undefined && known.untilMs > now) return known.facts;
    for (const [old, { untilMs }] of this.#asked) if (untilMs <= now) this.#asked.delete(old);
    const { modelId } = endpoint;
    const documents = runnerDocuments(getter(endpoint, send), modelId);
    const facts = documents.then((documents) => runnerFacts(documents, modelId));
    this.#asked.set(key, { untilMs: now + KEPT_MS, facts });
    void facts.then((facts) => {
      // A model that is not loaded has no window yet.
      if (facts !== undefined && facts.contextWindow === undefined) this.#asked.delete(key);
    });
    return facts;
  }
}

function getter({ baseUrl = "", apiKey }: Endpoint, send: Fetch): GetJson {
  const headers: Record<string, string> = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
  const signal = AbortSignal.timeout(ASK_MS);
  return async (path) => {
    try {
      const response = await send(serverRoot(baseUrl) + path, { headers, signal });
      return response.ok ? await readJson(response) : undefined;
    } catch {
      // Not that kind of server, or it is busy: the window stays as it was.
      return undefined;
    }
  };
}

/** The address without its version, where these servers have their own paths. */
export const serverRoot = (baseUrl: string): string => baseUrl.replace(/\/+$/, "").replace(/\/v1$/, "");

const RUNNERS: ReadonlySet<string> = new Set<Runner>(["ollama", "lmstudio", "llamacpp"]);

/** By its name or its place: of this machine, its containers, or the network around it. */
function mayBeRunner({ api, provider }: Target, { baseUrl }: Endpoint): boolean {
  if ((api !== "chat" && api !== "responses") || baseUrl === undefined || !URL.canParse(baseUrl))
    return false;
  if (provider.preset !== undefined || provider.name === "rehearsal") return false;
  const host = new URL(baseUrl).hostname.replace(/^\[|\]$/g, "");
  const isNear =
    isIP(host) > 0
      ? !isPublicAddress(host)
      : !host.includes(".") || /\.(?:local|localhost|localdomain|internal|lan|home|home\.arpa)$/i.test(host);
  return isNear || RUNNERS.has(provider.name);
}

export function toFields(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

/** A number of tokens, if it is one. */
export function count(value: unknown): number | undefined {
  return typeof value === "number" && Number.isInteger(value) && value > 0 ? value : undefined;
}
