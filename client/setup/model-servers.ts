/** What a model server reports: its models and their actual windows. Time limits are short, and a missing answer is fine. */
import { readJson } from "../../activities/process/bounded-body.ts";
import { findProvider } from "../../activities/config/providers.ts";

export interface ServedModel {
  readonly id: string;
  /** Tokens that the server accepts for this model; undefined if it does not report it. */
  readonly window?: number | undefined;
  /** The model's maximum, if the server does not report the window in use. */
  readonly most?: number | undefined;
  /** False: the server says that it cannot call tools. */
  readonly tools?: false | undefined;
}

export interface ModelServer {
  readonly provider: string;
  readonly baseUrl: string;
  readonly models: readonly ServedModel[];
}

/** Servers that people run on their own machine, at the default ports. */
const LOCAL = ["ollama", "lmstudio", "llamacpp", "vllm"].map((provider) => ({
  provider,
  baseUrl: findProvider(`${provider}/any`, {}, {})?.provider.baseUrl ?? "",
}));
/** Local servers answer at once or are not running. */
const LOCAL_MS = 300;

/** The servers on this machine that answer, all asked in parallel. */
export async function findLocalServers(
  servers: readonly { readonly provider: string; readonly baseUrl: string }[] = LOCAL,
): Promise<ModelServer[]> {
  const asked = servers.map(async ({ provider, baseUrl }) => {
    const models = await askServer(baseUrl, { timeoutMs: LOCAL_MS });
    return models === undefined || models.length === 0 ? [] : [{ provider, baseUrl, models }];
  });
  return (await Promise.all(asked)).flat();
}

/** The line that says how to use a found server. */
export function serverNote({ provider, baseUrl, models }: ModelServer): string {
  const [first, ...others] = models;
  const [second] = others;
  const more = others.length > 1 ? ` (and ${others.length} more)` : second && ` (or ${second.id})`;
  return `A model server answers at ${new URL(baseUrl).host}. To use it: --model ${provider}/${first?.id ?? ""}${more ?? ""}`;
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
  const root = baseUrl.replace(/\/+$/, "").replace(/\/v1$/, "");
  const listed = await getJson(`${baseUrl.replace(/\/+$/, "")}/models`, options);
  const models = modelsOf(listed);
  if (models === undefined || models.every(({ window }) => window !== undefined)) return models;
  // Each path exists on one kind of server only; the others answer 404.
  const [props, loaded, studio] = await Promise.all(
    ["/props", "/api/ps", "/api/v0/models"].map((path) => getJson(root + path, options)),
  );
  return models.map((model) => ({
    ...model,
    window: model.window ?? windowOf(model.id, { props, loaded, studio }),
    ...mostOf(model.id, studio),
  }));
}

/**
 * Ollama's data about a model: the window from its Modelfile, else the model's maximum; whether it can call tools.
 * @returns undefined for another kind of server
 */
export async function askOllama(
  baseUrl: string,
  model: string,
  { timeoutMs, headers = {} }: AskOptions,
): Promise<Omit<ServedModel, "id"> | undefined> {
  const root = baseUrl.replace(/\/+$/, "").replace(/\/v1$/, "");
  const shown = fieldsOf(
    await getJson(`${root}/api/show`, {
      signal: AbortSignal.timeout(timeoutMs),
      headers: { ...headers, "content-type": "application/json" },
      method: "POST",
      body: JSON.stringify({ model }),
    }),
  );
  const facts = fieldsOf(shown["model_info"]);
  const { parameters } = shown;
  const most = count(facts[`${String(facts["general.architecture"])}.context_length`]);
  const given = typeof parameters === "string" ? /^num_ctx\s+(\d+)$/m.exec(parameters)?.[1] : undefined;
  const { capabilities } = shown;
  const tools = Array.isArray(capabilities) && !capabilities.includes("tools") ? (false as const) : undefined;
  if (most === undefined && given === undefined && tools === undefined) return undefined;
  return { window: given === undefined ? undefined : Number(given), most, tools };
}

/** Finds a listed model by name: Ollama's `latest` may be omitted, and llama.cpp serves its one model under any name. */
export function servedAs(
  models: readonly ServedModel[],
  name: string,
  provider: string | undefined,
): ServedModel | undefined {
  return (
    models.find(({ id }) => id === name) ??
    models.find(({ id }) => id === `${name}:latest`) ??
    (provider === "llamacpp" && models.length === 1 ? models[0] : undefined)
  );
}

/** OpenAI's list of models; vLLM adds `max_model_len`, routers `context_length`. Pure. */
function modelsOf(list: unknown): ServedModel[] | undefined {
  const { data } = fieldsOf(list);
  if (!Array.isArray(data)) return undefined;
  return data.map(fieldsOf).flatMap((entry) => {
    if (typeof entry["id"] !== "string") return [];
    const window =
      count(entry["max_model_len"]) ?? count(entry["context_length"]) ?? count(entry["context_window"]);
    return [{ id: entry["id"], ...(window === undefined ? {} : { window }) }];
  });
}

/** LM Studio reports the maximum for models that are not loaded. Pure. */
function mostOf(id: string, studio: unknown): Pick<ServedModel, "most"> {
  const { data } = fieldsOf(studio);
  const most = Array.isArray(data)
    ? count(data.map(fieldsOf).find((entry) => entry["id"] === id)?.["max_context_length"])
    : undefined;
  return most === undefined ? {} : { most };
}

/** The window that a server's own path reports: llama.cpp `/props`, Ollama `/api/ps`, LM Studio `/api/v0/models`. Pure. */
function windowOf(
  id: string,
  { props, loaded, studio }: Readonly<Record<"props" | "loaded" | "studio", unknown>>,
): number | undefined {
  const named = (list: unknown, key: string) =>
    Array.isArray(list) ? list.map(fieldsOf).find((entry) => entry[key] === id) : undefined;
  const ollama = named(fieldsOf(loaded)["models"], "name");
  const lmstudio = named(fieldsOf(studio)["data"], "id");
  return (
    count(fieldsOf(fieldsOf(props)["default_generation_settings"])["n_ctx"]) ??
    count(ollama?.["context_length"]) ??
    count(lmstudio?.["loaded_context_length"])
  );
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

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

function count(value: unknown): number | undefined {
  return typeof value === "number" && Number.isInteger(value) && value > 0 ? value : undefined;
}
