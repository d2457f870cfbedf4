/** What a model server says of itself: its models, and the window that it really has. Asked briefly, never relied on. */
import { findProvider } from "../../activities/config/providers.ts";

export interface ServedModel {
  readonly id: string;
  /** Tokens that the server takes for this model; undefined where it does not say. */
  readonly window?: number | undefined;
}

export interface ModelServer {
  readonly provider: string;
  readonly baseUrl: string;
  readonly models: readonly ServedModel[];
}

/** Servers that people run on their own machine, at their usual ports. */
const LOCAL = ["ollama", "lmstudio", "llamacpp", "vllm"].map((provider) => ({
  provider,
  baseUrl: findProvider(`${provider}/any`, {}, {})?.provider.baseUrl ?? "",
}));
/** Local servers answer at once or are not there. */
const LOCAL_MS = 300;

/** The servers on this machine that answer, all asked at the same time. */
export async function findLocalServers(
  servers: readonly { readonly provider: string; readonly baseUrl: string }[] = LOCAL,
): Promise<ModelServer[]> {
  const asked = servers.map(async ({ provider, baseUrl }) => {
    const models = await askServer(baseUrl, { timeoutMs: LOCAL_MS });
    return models === undefined || models.length === 0 ? [] : [{ provider, baseUrl, models }];
  });
  return (await Promise.all(asked)).flat();
}

/** The line that says how to use a server that was found. */
export function serverNote({ provider, baseUrl, models }: ModelServer): string {
  const [first, ...others] = models;
  const more = others.length === 0 ? "" : ` (and ${others.length} more)`;
  return `A model server answers at ${new URL(baseUrl).host}. To use it: --model ${provider}/${first?.id ?? ""}${more}`;
}

interface AskOptions {
  readonly timeoutMs: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * The models of a compatible server, with their windows where it or its own interface says them.
 * @returns undefined where nothing answers, or something else than a model server
 */
export async function askServer(baseUrl: string, options: AskOptions): Promise<ServedModel[] | undefined> {
  const root = baseUrl.replace(/\/+$/, "").replace(/\/v1$/, "");
  const listed = await getJson(`${baseUrl.replace(/\/+$/, "")}/models`, options);
  const models = modelsOf(listed);
  if (models === undefined || models.every(({ window }) => window !== undefined)) return models;
  // Each of these exists on one kind of server only; the others answer 404.
  const [props, loaded, studio] = await Promise.all(
    ["/props", "/api/ps", "/api/v0/models"].map((path) => getJson(root + path, options)),
  );
  return models.map((model) => ({
    ...model,
    window: model.window ?? windowOf(model.id, { props, loaded, studio }),
  }));
}

/** OpenAI's list of models; vLLM adds `max_model_len`, routers `context_length`. Pure. */
function modelsOf(list: unknown): ServedModel[] | undefined {
  const { data } = fieldsOf(list);
  if (!Array.isArray(data)) return undefined;
  return data.map(fieldsOf).flatMap((one) => {
    if (typeof one["id"] !== "string") return [];
    const window =
      count(one["max_model_len"]) ?? count(one["context_length"]) ?? count(one["context_window"]);
    return [{ id: one["id"], ...(window === undefined ? {} : { window }) }];
  });
}

/** What servers say at their own addresses: llama.cpp `/props`, Ollama `/api/ps`, LM Studio `/api/v0/models`. Pure. */
function windowOf(
  id: string,
  { props, loaded, studio }: Readonly<Record<"props" | "loaded" | "studio", unknown>>,
): number | undefined {
  const named = (list: unknown, key: string) =>
    Array.isArray(list) ? list.map(fieldsOf).find((one) => one[key] === id) : undefined;
  const ollama = named(fieldsOf(loaded)["models"], "name");
  const lmstudio = named(fieldsOf(studio)["data"], "id");
  return (
    count(fieldsOf(fieldsOf(props)["default_generation_settings"])["n_ctx"]) ??
    count(ollama?.["context_length"]) ??
    count(lmstudio?.["loaded_context_length"])
  );
}

async function getJson(url: string, { timeoutMs, headers = {} }: AskOptions): Promise<unknown> {
  try {
    const response = await fetch(url, { headers, signal: AbortSignal.timeout(timeoutMs) });
    return response.ok ? await response.json() : undefined;
  } catch {
    // Nothing there, something slow, or not JSON: no model server for us.
    return undefined;
  }
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

function count(value: unknown): number | undefined {
  return typeof value === "number" && Number.isInteger(value) && value > 0 ? value : undefined;
}
