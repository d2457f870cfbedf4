/**
 * Implements the model port with the providers' packages of AI SDK 7, by the wires of `wires/`. Only this folder imports them,
 * each on its first call. Their streams are read directly: each part of the SDK's own loop around them (`streamText`: steps,
 * tools that it runs, output formats) costs a transform stream for all of some hundred pieces a step, and none is used here.
 */
import { AnswerReader } from "./answer-reader.ts";
import { type Model, type ModelAnswer, type ModelDelta, type ModelRequest } from "./model.ts";
import { type JsonObject } from "../contract/json-object.ts";
import { type ToolSpec } from "../contract/tools.ts";
import type { ModelTarget } from "../config/model-target.ts";
import { type Environment, fullModelName } from "../config/providers.ts";
import { deadlinesOf } from "./deadlines.ts";
import { type Endpoint, endpointOf } from "./endpoint.ts";
import type { Identities } from "./identity/identities.ts";
import { createNetwork, type Network } from "./provider-fetch.ts";
import { toModelError } from "./to-model-error.ts";
import { createWithoutRefused } from "./refusals/without-refused.ts";
import { toGoogleSchema } from "./request/google-schema.ts";
import { toMoonshotSchema } from "./request/moonshot-schema.ts";
import { toModelMessages } from "./request/to-model-messages.ts";
import { Watchdog } from "./watchdog.ts";
import type { ProviderCall, ProviderMessage, ProviderTool } from "./provider-model.ts";
import { cacheMark, NO_CALLS, rulesOf, type WireRules } from "./request/wire-rules.ts";
import { ServedTier } from "./served-tier.ts";
import type { Reading } from "./stream-events.ts";
import { loadWire } from "./wires/load-wire.ts";
import type { Wire } from "./wires/wire.ts";

export interface AiSdkOptions {
  /** Keys and addresses by the names of their variables, such as OPENAI_API_KEY. */
  readonly environment: Environment;
  /** Removes secrets from a text; applied to every error's message. */
  readonly mask: (text: string) => string;
  /** Providers that the operator has placed, or whose tokens this worker has. */
  readonly identities?: Identities;
}

export interface AiSdkModel extends Model {
  /** Loads, ahead of the first call, what every call needs and the wire that most calls use. */
  warm(): Promise<void>;
}

/** The model port. Holds no connection: nothing needs closing. */
export function createAiSdkModel(options: AiSdkOptions): AiSdkModel {
  const { environment, identities } = options;
  identities?.maskWith(options.mask);
  const withoutRefused = createWithoutRefused();
  let loading: Promise<Network> | undefined;
  const load = () => (loading ??= createNetwork());
  return {
    warm: async () => void (await Promise.all([load(), loadWire("responses")])),
    ask: async (asked, onDelta, signal) => {
      signal.throwIfAborted();
      const request = { ...asked, target: identities?.targetOf(asked.target) ?? asked.target };
      const endpoint = endpointOf(request.target, environment, identities);
      const [network, wire] = await Promise.all([load(), loadWire(request.target.api)]);
      signal.throwIfAborted();
      const asking = { wire, network, endpoint, mask: options.mask };
      const ask = withoutRefused(endpoint, (request) => askOnce({ ...asking, request }, onDelta, signal));
      return ask(request);
    },
  };
}

/** Above this share of the window, by our count, an empty refusal means that the request does not fit. Source: ours. */
const NEAR_WINDOW = 0.8;

interface Asking {
  readonly wire: Wire;
  readonly network: Network;
  readonly request: ModelRequest;
  readonly endpoint: Endpoint;
  readonly mask: (text: string) => string;
}

async function askOnce(
  asking: Asking,
  onDelta: (delta: ModelDelta) => void,
  signal: AbortSignal,
): Promise<ModelAnswer> {
  const { request } = asking;
  const startedAt = performance.now();
  const call = new AbortController();
  const onAbort = () => call.abort(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  const watchdog = new Watchdog(
    deadlinesOf(request, asking.endpoint),
    (silent) => call.abort(silent),
    () => onDelta({ type: "thinking" }),
  );
  // A provider's package may be slow to notice an abort, or may end the stream normally; this promise rejects at once.
  const aborted = new Promise<never>((_, reject) => {
    call.signal.addEventListener("abort", () => reject(call.signal.reason as Error), { once: true });
  });
  aborted.catch(() => undefined);

  const reader = new AnswerReader(request, onDelta, watchdog);
  const reading = asking.wire.reading?.();
  const tier = request.target.tier === undefined ? undefined : new ServedTier();
  const read = async () => {
    const repaired = tier === undefined ? reading : { ...reading, repair: tier.around(reading?.repair) };
    const { stream } = await startStream(asking, call.signal, watchdog, repaired);
    await reader.read(stream, call.signal);
  };
  try {
    await Promise.race([read(), aborted]);
    return reader.answer(startedAt, reading?.kept?.(), tier?.name);
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    throw toModelError(call.signal.aborted ? call.signal.reason : error, {
      model: fullModelName(request.target.model),
      modelName: request.target.modelName,
      api: request.target.api,
      provider: request.target.provider,
      identity: asking.endpoint.identity?.name,
      nearWindow: (request.estimatedTokens ?? 0) >= NEAR_WINDOW * request.target.contextWindow,
      heard: reader.firstTokenAt !== undefined,
      mask: asking.mask,
      now: Date.now(),
    });
  } finally {
    watchdog.stop();
    signal.removeEventListener("abort", onAbort);
    // Whatever the reason for leaving, the provider must stop writing (and billing).
    call.abort();
  }
}

function startStream(asking: Asking, signal: AbortSignal, watchdog: Watchdog, reading: Reading | undefined) {
  const { wire, network, request, endpoint } = asking;
  const { target } = request;
  const rules = rulesOf(target);
  const hasTools = request.tools.length > 0 && (request.noCalls !== true || rules.toolChoiceNone);
  const fetch = network.fetchFor({
    endpoint,
    body: { ...tierOf(target), ...(hasTools && request.noCalls ? NO_CALLS[target.api] : {}), ...target.body },
    onHeaders: () => watchdog.connected(),
    onBytes: () => watchdog.alive(),
    reading,
    gatherMs: request.gatherMs ?? (() => 0),
  });
  const { model, providerOptions } = wire.settings({ request, endpoint, rules, fetch });
  const effort = target.reasoning?.effort;
  const call: ProviderCall = {
    prompt: [...systemOf(request, rules), ...toModelMessages(request.messages, target)],
    ...(hasTools
      ? { tools: request.tools.map((tool) => toTool(tool, rules)), toolChoice: { type: "auto" } }
      : {}),
    ...(effort === undefined ? {} : { reasoning: effort }),
    ...(target.temperature === undefined ? {} : { temperature: target.temperature }),
    maxOutputTokens: request.maxOutputTokens,
    abortSignal: signal,
    providerOptions,
  };
  return model.doStream(call);
}

/** The same field on every wire except Google's, which has its own setting. */
function tierOf({ tier, api }: ModelTarget): Record<string, unknown> {
  return tier === undefined || api === "gemini" ? {} : { service_tier: tier };
}

/** Marks the system prompt's end for Anthropic's cache, independent of the messages. */
function systemOf({ system, target }: ModelRequest, rules: WireRules): ProviderMessage[] {
  if (system === "") return [];
  const isMarked = rules.cacheMarks && target.api === "messages";
  const mark = { providerOptions: { anthropic: { cacheControl: cacheMark(target) } } };
  return [{ role: "system", content: system, ...(isMarked ? mark : {}) }];
}

/** No validation here: invalid arguments get an error result, not a throw. */
function toTool({ name, description, inputSchema }: ToolSpec, { schemas }: WireRules): ProviderTool {
  return { type: "function", name, description, inputSchema: IN_SUBSET[schemas](inputSchema) };
}

const IN_SUBSET: Readonly<Record<WireRules["schemas"], (schema: JsonObject) => Record<string, unknown>>> = {
  full: (schema) => schema,
  google: toGoogleSchema,
  moonshot: toMoonshotSchema,
};
