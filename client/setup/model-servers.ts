/** What a model server reports: its models and their actual windows. Time limits are short, and a missing answer is fine. */
import { listNames } from "../console/format.ts";
import { readJson } from "../../activities/process/bounded-body.ts";
import { findProvider, usualAddress } from "../../activities/config/providers.ts";
import {
  count,
  toFields,
  isSameModel,
  runnerDocuments,
  runnerFacts,
  serverRoot,
  type ServerFacts,
} from "../../activities/model/served-window.ts";

/** What a server says about one of its models; `runner` is set if a person chooses windows there. */
export interface ServedModel extends Partial<ServerFacts> {
  readonly id: string;
}

export interface ModelServer {
  readonly provider: string;
  readonly baseUrl: string;
  readonly models: readonly ServedModel[];
}

/** Servers that people run on their own machine, at the default ports. */
const LOCAL = [
  ...["ollama", "lmstudio", "llamacpp", "vllm"].map((provider) => ({
    provider,
    baseUrl: findProvider(`${provider}/any`, {}, {})?.provider.baseUrl ?? "",
  })),
  // Announced by llama-server (b11434) as the default of a later release; until then it is 8080.
  { provider: "llamacpp", baseUrl: "http://127.0.0.1:9931/v1" },
];
/** Local servers answer at once or are not running. */
const LOCAL_MS = 300;

/** The servers on this machine that answer, all asked in parallel. */
export async function findLocalServers(
  servers: readonly { readonly provider: string; readonly baseUrl: string }[] = LOCAL,
): Promise<ModelServer[]> {
  const answers = servers.map(async ({ provider, baseUrl }) => {
    const models = await askModels(baseUrl, { timeoutMs: LOCAL_MS });
    return models === undefined || models.length === 0 ? [] : [{ provider, baseUrl, models }];
  });
  return (await Promise.all(answers)).flat();
}

/** The line that says how to use a found server: with a model that can call tools, as far as the server says so. */
export function serverNote({ provider, baseUrl, models }: ModelServer): string {
  const [first, ...others] = models.filter(({ tools }) => tools !== false);
  const answers = `A model server answers at ${new URL(baseUrl).host}`;
  if (first === undefined)
    return `${answers}, but it says that none of its models can call tools: ${listNames(models.map(({ id }) => id))}.`;
  const [second] = others;
  const more = others.length > 1 ? ` (and ${others.length} more)` : second && ` (or ${second.id})`;
  const baseUrlLine =
    baseUrl === usualAddress(provider)
      ? ""
      : `providers.${provider}.baseUrl: ${baseUrl} in longhaul.yaml, and `;
  return `${answers}. To use it: ${baseUrlLine}--model ${provider}/${first.id}${more ?? ""}`;
}

interface AskOptions {
  /** For all requests together. */
  readonly timeoutMs: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * The models of a compatible server, with their windows if its model list or its own API reports them.
 * @returns undefined if nothing answers, or something other than a model server
 */
export async function askServer(
  baseUrl: string,
  { timeoutMs, headers = {} }: AskOptions,
): Promise<ServedModel[] | undefined> {
  const options = { signal: AbortSignal.timeout(timeoutMs), headers };
  const models = modelsOf(await getJson(`${baseUrl.replace(/\/+$/, "")}/models`, options));
  if (models === undefined || models.every(({ contextWindow }) => contextWindow !== undefined)) return models;
  const documents = await runnerDocuments((path) => getJson(serverRoot(baseUrl) + path, options));
  return models.map((model) => {
    const facts = runnerFacts(documents, model.id);
    return { ...facts, ...model, contextWindow: model.contextWindow ?? facts?.contextWindow };
  });
}

/** Most models of a server that are asked about one by one. */
const MOST_SHOWN = 20;

/** The same; at Ollama each model with what it can do, and what it supports. */
export async function askModels(baseUrl: string, options: AskOptions): Promise<ServedModel[] | undefined> {
  const models = await askServer(baseUrl, options);
  return (
    models &&
    Promise.all(
      models.map(async (model, index) =>
        model.runner === "ollama" && index < MOST_SHOWN
          ? withShown(model, await askOllama(baseUrl, model.id, options))
          : model,
      ),
    )
  );
}

/** What a server has loaded counts more than what the model's file says. */
function withShown(model: ServedModel, details: Awaited<ReturnType<typeof askOllama>>): ServedModel {
  return {
    ...model,
    contextWindow: model.contextWindow ?? details?.contextWindow,
    most: model.most ?? details?.most,
    tools: model.tools ?? details?.tools,
  };
}

/**
 * What a server says about one model.
 * @returns also its models, that one with all that is known of it; undefined if it lists none
 */
export async function askModel(
  baseUrl: string,
  { name, provider }: { readonly name: string; readonly provider: string | undefined },
  options: AskOptions,
): Promise<{ readonly models: ServedModel[] | undefined; readonly served: ServedModel | undefined }> {
  const models = await askServer(baseUrl, options);
  const listed = models && servedAs(models, name, provider);
  const runner = listed?.runner;
  const mayBeOllama = runner === "ollama" || (runner === undefined && listed?.contextWindow === undefined);
  const details = mayBeOllama ? await askOllama(baseUrl, name, options) : undefined;
  if (details === undefined) return { models, served: listed };
  const served = withShown(listed ?? { id: name, runner: "ollama" }, details);
  return { models: models?.map((model) => (model === listed ? served : model)), served };
}

/**
 * Ollama's data about a model: the window from its Modelfile, else the model's maximum; whether it can call tools.
 * @returns undefined for another kind of server
 */
async function askOllama(
  baseUrl: string,
  model: string,
  { timeoutMs, headers = {} }: AskOptions,
): Promise<Omit<ServedModel, "id"> | undefined> {
  const details = toFields(
    await getJson(`${serverRoot(baseUrl)}/api/show`, {
      signal: AbortSignal.timeout(timeoutMs),
      headers: { ...headers, "content-type": "application/json" },
      method: "POST",
      body: JSON.stringify({ model }),
    }),
  );
  const facts = toFields(details["model_info"]);
  const { parameters } = details;
  const most = count(facts[`${String(facts["general.architecture"])}.context_length`]);
  const configuredWindow =
    typeof parameters === "string" ? /^num_ctx\s+(\d+)$/m.exec(parameters)?.[1] : undefined;
  const { capabilities } = details;
  const tools = Array.isArray(capabilities) && !capabilities.includes("tools") ? (false as const) : undefined;
  if (most === undefined && configuredWindow === undefined && tools === undefined) return undefined;
  return {
    contextWindow: configuredWindow === undefined ? undefined : Number(configuredWindow),
    most,
    tools,
  };
}

/** Finds a listed model by name: Ollama's `latest` may be omitted, and llama.cpp serves its one model under any name. */
export function servedAs(
  models: readonly ServedModel[],
  name: string,
  provider: string | undefined,
): ServedModel | undefined {
  return (
    models.find(({ id }) => isSameModel(id, name)) ??
    (provider === "llamacpp" && models.length === 1 ? models[0] : undefined)
  );
}

/** OpenAI's list of models; vLLM adds `max_model_len`, routers `context_length`. */
function modelsOf(list: unknown): ServedModel[] | undefined {
  const { data } = toFields(list);
  if (!Array.isArray(data)) return undefined;
  return data.map(toFields).flatMap((entry) => {
    if (typeof entry["id"] !== "string") return [];
    const contextWindow =
      count(entry["max_model_len"]) ?? count(entry["context_length"]) ?? count(entry["context_window"]);
    return [{ id: entry["id"], contextWindow }];
  });
}

async function getJson(url: string, request: RequestInit): Promise<unknown> {
  try {
    const response = await fetch(url, request);
    return response.ok ? await readJson(response) : undefined;
  } catch {
    // No answer in time, or not JSON: not a usable model server.
    return undefined;
  }
}
