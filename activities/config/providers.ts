/** Services that Longhaul knows by name, as data, and which of them serves a model. */
import type { Api, Provider, ProviderConfig, WireOptions } from "./model-target.ts";
import { apiOfPreset, isPreset, presetAddress, type PresetName } from "./presets.ts";

interface BuiltIn {
  readonly api: Api;
  readonly baseUrl?: string;
  readonly baseUrlEnv?: string;
  readonly keyEnv?: string;
  /** The service needs no key. */
  readonly keyless?: true;
  readonly headersEnv?: Readonly<Record<string, string>>;
  readonly options?: WireOptions;
  readonly preset?: PresetName;
}

/** Sources: each service's own reference of its compatible endpoint; needs beyond the wire: docs/models.md. */
const builtInProviders: Readonly<Record<string, BuiltIn>> = {
  openai: { api: "responses", baseUrlEnv: "OPENAI_BASE_URL", keyEnv: "OPENAI_API_KEY" },
  anthropic: { api: "messages", keyEnv: "ANTHROPIC_API_KEY" },
  google: { api: "gemini", keyEnv: "GOOGLE_GENERATIVE_AI_API_KEY" },
  azure: {
    api: "responses",
    baseUrlEnv: "AZURE_OPENAI_BASE_URL",
    headersEnv: { "api-key": "AZURE_API_KEY" },
  },
  openrouter: {
    api: "chat",
    baseUrl: "https://openrouter.ai/api/v1",
    keyEnv: "OPENROUTER_API_KEY",
    options: { sendReasoning: "field", cacheMarks: true },
  },
  groq: {
    api: "chat",
    baseUrl: "https://api.groq.com/openai/v1",
    keyEnv: "GROQ_API_KEY",
    // The service refuses its own `reasoning` in a message.
    options: { sendReasoning: "none" },
  },
  mistral: {
    api: "chat",
    baseUrl: "https://api.mistral.ai/v1",
    keyEnv: "MISTRAL_API_KEY",
    options: { callIds: "nine", userAfterResults: false, sendReasoning: "none" },
  },
  deepseek: {
    api: "chat",
    baseUrl: "https://api.deepseek.com/v1",
    keyEnv: "DEEPSEEK_API_KEY",
    options: { sendReasoning: "field" },
  },
  ollama: { api: "chat", baseUrl: "http://127.0.0.1:11434/v1", keyless: true },
  lmstudio: { api: "chat", baseUrl: "http://127.0.0.1:1234/v1", keyless: true },
  vllm: { api: "chat", baseUrl: "http://127.0.0.1:8000/v1", keyless: true },
  llamacpp: { api: "chat", baseUrl: "http://127.0.0.1:8080/v1", keyless: true },
  /** Plays a script on this machine. Source: requirement 7.4. */
  rehearsal: { api: "responses", baseUrlEnv: "LONGHAUL_REHEARSAL_URL", keyless: true },
};

/** The address of a built-in provider, if it has just one. */
export const usualAddress = (name: string): string | undefined => builtInOf(name)?.baseUrl;

/** A preset is a provider too, for clients of a worker whose policy file says where it is. */
const builtInOf = (name: string): BuiltIn | undefined =>
  isPreset(name) && name !== "azure" ? { ...apiOfPreset(name), preset: name, keyless: true } : listedAs(name);

const listedAs = (name: string): BuiltIn | undefined =>
  Object.hasOwn(builtInProviders, name) ? builtInProviders[name] : undefined;

/** Variables that hold the address or the credentials of built-in providers. */
export const providerVariables: readonly string[] = Object.values(builtInProviders).flatMap(
  ({ baseUrlEnv, keyEnv, headersEnv }) =>
    [baseUrlEnv, keyEnv, ...Object.values(headersEnv ?? {})].filter((name) => name !== undefined),
);

export type Environment = Readonly<Record<string, string | undefined>>;

export interface FoundProvider {
  readonly provider: Provider;
  readonly api: Api;
  /** The model's name on the wire. */
  readonly modelName: string;
}

/** `provider/model`; a bare name is OpenAI's. */
export function fullModelName(name: string): string {
  return name.includes("/") ? name : `openai/${name}`;
}

/** Whether an address is OpenAI's own, in any region, rather than a compatible server's. */
const isOpenAis = (address: string): boolean =>
  URL.canParse(address) && /^([a-z]+\.)?api\.openai\.com$/.test(new URL(address).hostname);

/** Whether OPENAI_BASE_URL names a server other than OpenAI's. */
export function hasCompatibleServer({ OPENAI_BASE_URL: address }: Environment): boolean {
  return address !== undefined && address !== "" && !isOpenAis(address);
}

/**
 * Which provider to ask for a model. The name before the first `/` is a provider's: a configured one, or a built-in
 * one that has its key or needs none. Otherwise the server of OPENAI_BASE_URL, if it is not OpenAI's own, is asked
 * for the full name: routers and proxies use such model names, including `openai/gpt-oss-120b`.
 * @returns undefined if the provider is unknown
 */
export function findProvider(
  written: string,
  configured: Readonly<Record<string, ProviderConfig>>,
  environment: Environment,
): FoundProvider | undefined {
  const name = written.trim();
  const full = fullModelName(name);
  const providerName = full.slice(0, full.indexOf("/"));
  const modelName = full.slice(full.indexOf("/") + 1);
  const builtIn = builtInOf(providerName);
  const own = Object.hasOwn(configured, providerName) ? configured[providerName] : undefined;
  if (own === undefined && hasCompatibleServer(environment) && !isReady(providerName, builtIn, environment))
    return { ...described("openai", builtInProviders["openai"], configured["openai"]), modelName: name };
  if (own === undefined && builtIn === undefined) return undefined;
  return { ...described(providerName, builtIn, own), modelName };
}

/** Whether a built-in provider can be used: it needs no key, or has one. OpenAI itself is then what OPENAI_BASE_URL says. */
function isReady(name: string, builtIn: BuiltIn | undefined, environment: Environment): boolean {
  if (builtIn === undefined || name === "openai") return false;
  return builtIn.keyless === true || keyVariables(builtIn).every((variable) => environment[variable]);
}

/** A provider as it is configured, with what is built in of it. */
export function describedProvider(
  name: string,
  own: ProviderConfig,
): { readonly provider: Provider; readonly api: Api } {
  return described(name, builtInOf(name), own);
}

function described(
  name: string,
  builtIn: BuiltIn | undefined,
  own: ProviderConfig | undefined,
): { readonly provider: Provider; readonly api: Api } {
  const preset = own?.preset;
  const {
    api,
    keyless: _,
    ...known
  }: BuiltIn = preset === undefined ? (builtIn ?? { api: "chat" }) : apiOfPreset(preset);
  const { api: ownApi, auth: _auth, ...configured } = own ?? {};
  const address = configured.baseUrl ?? presetAddress(configured);
  const options = { ...known.options, ...configured.options };
  return {
    provider: {
      name,
      ...known,
      ...configured,
      ...(address === undefined ? {} : { baseUrl: address }),
      ...(Object.keys(options).length > 0 ? { options } : {}),
    } as Provider,
    // A custom server usually supports chat completions, as nearly all compatible ones do.
    api: ownApi ?? (name === "openai" && configured.baseUrl !== undefined ? "chat" : api),
  };
}

/** Variables that must be set before a provider can be used. A server at a custom address may need none. */
function keyVariables({ keyEnv, headersEnv = {} }: Pick<Provider, "keyEnv" | "headersEnv">): string[] {
  return [...(keyEnv === undefined ? [] : [keyEnv]), ...Object.values(headersEnv)];
}

/**
 * One line per model that could be used if none was named: of a configured provider, or of one that has its key. Only
 * OpenAI's key selects a model automatically; all others must be named.
 */
export function keyNotes(
  environment: Environment,
  configured: Readonly<Record<string, ProviderConfig>>,
): string[] {
  const own = Object.entries(configured).map(([name, provider]) => {
    const lacks = missingVariables(described(name, builtInOf(name), provider).provider, environment);
    const once = lacks.length === 0 ? "" : `, once ${lacks.join(" and ")} is set`;
    return `longhaul.yaml has the provider ${name}: --model ${name}/NAME uses it${once} (or \`model: ${name}/NAME\` in the file).`;
  });
  const ready = Object.entries(builtInProviders).flatMap(([name, builtIn]) => {
    const [variable] = keyVariables(builtIn);
    if (name === "openai" || variable === undefined || !environment[variable]) return [];
    if (Object.hasOwn(configured, name)) return [];
    return [`${variable} is set: --model ${name}/NAME uses it (longhaul models ${name} shows the names).`];
  });
  return [...own, ...ready];
}

/** The variables that a provider lacks in an environment: keys, and the address if it is not set elsewhere. */
export function missingVariables(provider: Provider, environment: Environment): string[] {
  const { name, baseUrl, baseUrlEnv } = provider;
  const address = baseUrl ?? ((baseUrlEnv && environment[baseUrlEnv]) || undefined);
  // OpenAI's packages know their own address; a compatible server in its place may need no key.
  const mayLackKey = name === "openai" && address !== undefined && !isOpenAis(address);
  const needed = mayLackKey ? [] : keyVariables(provider);
  const needsAddress = address === undefined && baseUrlEnv !== undefined && name !== "openai";
  return [...needed, ...(needsAddress ? [baseUrlEnv] : [])].filter((variable) => !environment[variable]);
}
