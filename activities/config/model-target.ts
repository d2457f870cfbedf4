/** What a person configures about providers and models, what a session stores of it, and the models' rate limits. */
import { z } from "zod";
import { timerMs, headerName, headersSchema, httpAddress } from "./setting-values.ts";
import { apis, presetFields, type Api } from "./presets.ts";

/** Rate limits of a model, over all sessions and workers. */
const count = z.number().int().positive();

/** `models.<id>.rate` of longhaul.yaml, and each rule of the policy's `rates`. */
export const modelRateSchema = z.strictObject({
  requestsPerMinute: count.optional(),
  /** Input and output tokens, as billed. */
  tokensPerMinute: count.optional(),
  /** Most requests open at once. */
  concurrent: count.optional(),
});
export type ModelRate = z.infer<typeof modelRateSchema>;
type RateLimit = keyof ModelRate;

/** What each limit counts, for people. */
export const RATE_WORDS: Readonly<Record<RateLimit, string>> = {
  requestsPerMinute: "requests a minute",
  tokensPerMinute: "tokens a minute",
  concurrent: "requests at once",
};

/** How much of a model's limits is used at the time of a request. */
export interface RateUse {
  readonly requests: number;
  /** Tokens used or reserved by this minute's requests. */
  readonly tokens: number;
  readonly open: number;
  /** The part of `tokens` reserved for open requests: some of it is released again. */
  readonly openTokens: number;
  readonly msToNextMinute: number;
}

export interface RateRefusal {
  readonly limit: RateLimit;
  readonly waitMs: number;
}

/** The stricter of the operator's and the session's limit, for each kind; undefined if there is none. */
export function strictest(...rates: readonly (ModelRate | undefined)[]): ModelRate | undefined {
  const limits = (["requestsPerMinute", "tokensPerMinute", "concurrent"] as const).flatMap((limit) => {
    const values = rates.flatMap((rate) => rate?.[limit] ?? []);
    return values.length === 0 ? [] : [[limit, Math.min(...values)] as const];
  });
  return limits.length === 0 ? undefined : Object.fromEntries(limits);
}

/** First wait, growth and longest wait for a request that may end at any moment. Chosen: an attempt costs some 20 ms. */
const SOON_MS = 1_000;
const SOON_GROWTH = 1.5;
const SOON_MAX_MS = 10_000;

/**
 * Whether one more request fits. A request larger than a whole minute's tokens runs alone.
 * @param tokens that it may use: the estimate of its input, and all of its output
 * @param waits how often this request was refused before
 */
export function rateRefusal(
  { requestsPerMinute = Infinity, tokensPerMinute = Infinity, concurrent = Infinity }: ModelRate,
  use: RateUse,
  tokens: number,
  waits: number,
): RateRefusal | undefined {
  const soonMs = Math.min(SOON_MAX_MS, SOON_MS * SOON_GROWTH ** waits);
  const minuteMs = use.msToNextMinute;
  if (use.requests >= requestsPerMinute) return { limit: "requestsPerMinute", waitMs: minuteMs };
  if (use.tokens > 0 && use.tokens + tokens > tokensPerMinute) {
    const mayComeBack = use.tokens - use.openTokens + tokens <= tokensPerMinute;
    return { limit: "tokensPerMinute", waitMs: mayComeBack ? Math.min(soonMs, minuteMs) : minuteMs };
  }
  return use.open >= concurrent ? { limit: "concurrent", waitMs: soonMs } : undefined;
}

const tokens = z.number().int().positive();

export type { Api };

/**
 * The worker's other secrets, such as its database's password or a GITHUB_TOKEN, cannot be named: a key may be sent
 * to any address.
 */
const keyName = z
  .string()
  .refine(isKeyVariable, "the name of a variable that ends in _API_KEY or _API_TOKEN, such as ACME_API_KEY");

export function isKeyVariable(name: string): boolean {
  return /^[A-Z][A-Z0-9_]*_API_(KEY|TOKEN)$/.test(name) && name !== "TEMPORAL_API_KEY";
}

/**
 * What a server accepts, if it differs from what its wire allows. Source: the table of servers in docs/models.md,
 * each row from public reports.
 */
const wireOptionsSchema = z.strictObject({
  /** How reasoning is sent back to the model that made it: in its wire's form, as a field of the message, or not at all. */
  sendReasoning: z.enum(["native", "field", "none"]).optional(),
  /** Form of call ids: unchanged, letters and digits with `_` and `-`, or nine letters and digits. */
  callIds: z.enum(["any", "safe", "nine"]).optional(),
  /** Whether a tool's result may contain images; otherwise they follow in a user message. */
  filesInResults: z.boolean().optional(),
  /** Whether a user message may directly follow tool results. */
  userAfterResults: z.boolean().optional(),
  /** Whether a request may end with an assistant message. */
  endsWithAssistant: z.boolean().optional(),
  /** Whether `tool_choice: none` is accepted; otherwise the tools are left out of a wrap-up step. */
  toolChoiceNone: z.boolean().optional(),
  /** Marks for the provider's cache within the messages. */
  cacheMarks: z.boolean().optional(),
  /** Whether `prompt_cache_key` is accepted. */
  cacheKey: z.boolean().optional(),
  /** Name of the output limit's field on the chat wire. */
  maxTokensField: z.enum(["max_tokens", "max_completion_tokens"]).optional(),
  /** Role of the system prompt on the chat wire. */
  systemRole: z.enum(["system", "developer"]).optional(),
  /** Whether a text that is nothing but calls of tools is read as calls: for servers whose template does not fit the model. */
  callsInText: z.boolean().optional(),
});
export type WireOptions = z.infer<typeof wireOptionsSchema>;

const timeoutsSchema = z.strictObject({
  connect: timerMs.optional(),
  firstToken: timerMs.optional(),
  silence: timerMs.optional(),
});

/** `providers.<name>` of longhaul.yaml. */
export const providerConfigSchema = z.strictObject({
  api: z.enum(apis).optional(),
  baseUrl: httpAddress.optional(),
  keyEnv: keyName.optional(),
  headers: headersSchema.optional(),
  /** Header → worker variable that holds its value. */
  headersEnv: z.record(headerName, keyName).optional(),
  /** Query parameters added to each address, such as Azure's `api-version`. */
  query: z.record(z.string(), z.string()).optional(),
  /** Override `limits.connectTimeout` and similar settings, in ms. */
  timeouts: timeoutsSchema.optional(),
  options: wireOptionsSchema.optional(),
  ...presetFields,
  auth: z.never("it belongs to the worker's policy file (LONGHAUL_POLICY), under providers").optional(),
});
export type ProviderConfig = z.infer<typeof providerConfigSchema>;

const rate = z.strictObject({
  input: z.number(),
  /** Price of input read from the provider's cache. */
  cached: z.number(),
  /** Price of input written to the cache; default: as other input. */
  cacheWrite: z.number().optional(),
  output: z.number(),
});

/** USD per million tokens. */
export const priceSchema = rate.extend({
  /** Price of the whole request if its input has more tokens than `tokens`. */
  above: rate.extend({ tokens }).optional(),
  /** Factors on all of the above, by requested tier of service. */
  tiers: z.record(z.string(), z.number()).optional(),
});
export type Price = z.infer<typeof priceSchema>;

export const efforts = ["none", "minimal", "low", "medium", "high", "xhigh", "max"] as const;

const reasoningSchema = z.strictObject({
  effort: z.enum(efforts).optional(),
  /** Which reasoning summary to request for people; `none`: no summary. Default `auto`. */
  summary: z.enum(["auto", "concise", "detailed", "none"]).optional(),
  /**
   * Which reasoning is sent back: only the model's own (`keep`, the default), also another's as text (`text`), or
   * none (`drop`).
   */
  send: z.enum(["keep", "text", "drop"]).optional(),
});

const modalities = z.enum(["text", "image", "pdf"]);

/** A person's settings for requests to a model. */
const askingSchema = z.strictObject({
  reasoning: reasoningSchema.optional(),
  verbosity: z.enum(["low", "medium", "high"]).optional(),
  /** Tier of service, such as `flex` or `priority`. */
  tier: z.string().min(1).optional(),
  temperature: z.number().min(0).max(2).optional(),
  /** How closely the model looks at pictures, on OpenAI's wires; default `auto`, which is billed as `high`. */
  imageDetail: z.enum(["low", "high", "original"]).optional(),
  /** Additional fields of the request's body, sent unchanged. */
  body: z.record(z.string(), z.json()).optional(),
  /** How long the provider caches a request's prefix; `false`: no marks and no key for its cache. */
  cache: z.union([z.literal(false), z.enum(["5m", "30m", "1h", "24h"])]).optional(),
  /** Rate limits of the model over all sessions; the worker's operator may set stricter ones. */
  rate: modelRateSchema.optional(),
});

/** `models.<id>` of longhaul.yaml. */
export const modelConfigSchema = askingSchema.extend({
  /** False for a model that cannot call tools: it is refused before anything starts. `none`: it is asked without tools. */
  tools: z.union([z.boolean(), z.literal("none")]).optional(),
  contextWindow: tokens.min(4_000).optional(),
  maxOutput: tokens.optional(),
  /** Largest request, if that is less than the window. */
  maxInput: tokens.optional(),
  api: z.enum(apis).optional(),
  input: z.array(modalities).optional(),
  /** Share of the usable window at which compaction starts. */
  headroom: z.number().min(0.05).max(0.95).optional(),
  price: priceSchema.optional(),
  /** Models that take over a step if this one's provider fails, in order. */
  fallback: z.array(z.string().min(1)).max(8).optional(),
});
export type ModelConfig = z.infer<typeof modelConfigSchema>;

/** A provider as stored with a session: names of variables, never their values. */
const resolvedProviderSchema = providerConfigSchema.omit({ api: true, auth: true }).extend({
  name: z.string(),
  /** The worker's variable that holds the address, if no address is configured. */
  baseUrlEnv: z.string().optional(),
});
export type Provider = z.infer<typeof resolvedProviderSchema>;

/** A model as a session asks it: resolved once, stored in the session's row. */
export const modelTargetSchema = askingSchema.extend({
  /** `provider/model`. */
  model: z.string(),
  /** The model's name on the wire. */
  modelName: z.string(),
  provider: resolvedProviderSchema,
  contextWindow: tokens,
  /** The window before its server named a smaller one, which counts until the run ends. */
  widerWindow: tokens.optional(),
  maxOutput: tokens,
  /** Requested once if thinking used up `maxOutput`; absent if the model is not known to write more. */
  moreOutput: tokens.optional(),
  maxInput: tokens.optional(),
  api: z.enum(apis),
  input: z.array(modalities),
  headroom: z.number().optional(),
  price: priceSchema.optional(),
  /** Its sessions have no tools, because a person chose that: the model only answers in text. */
  noTools: z.literal(true).optional(),
  /** True if the model reasons before it answers. */
  thinks: z.boolean().optional(),
});
export type ModelTarget = z.infer<typeof modelTargetSchema>;
