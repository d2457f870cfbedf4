/**
 * Implements the model port with AI SDK 7: one request is `streamText` with the model of a provider's package, by the wires of
 * `wires/`. Only this folder imports the SDK, on its first call. Tools have no `execute`: the loop is ours, and runs them.
 */
import type * as Sdk from "ai";
import { windowMeasures } from "../config/budget.ts";
import type { ModelTarget, Api } from "../config/model-target.ts";
import { type Environment, fullModelName } from "../config/providers.ts";
import type { JsonObject } from "../text/json.ts";
import type { ToolSpec } from "../contract/tools.ts";
import { loadPart } from "../process/load-part.ts";
import { AnswerListener, toAnswer } from "./answer.ts";
import { COUNT_MS, countingFetch, TokenCounts } from "./count-tokens.ts";
import { type Endpoint, toEndpoint } from "./endpoint.ts";
import type { Identities } from "./identity/identities.ts";
import type { Model, ModelAnswer, ModelDelta, ModelRequest } from "./model.ts";
import { createNetwork, type Network } from "./provider-fetch.ts";
import { FieldRefusals, OutputRefusals } from "./refusals/fields.ts";
import { FileRefusals } from "./refusals/files.ts";
import type { Ask, Refusals } from "./refusals/refusals.ts";
import { SummaryRefusals, ThoughtRefusals } from "./refusals/thoughts.ts";
import { ToolRefusals } from "./refusals/tools.ts";
import { toModelMessages } from "./request/to-model-messages.ts";
import { toGoogleSchema, toMoonshotSchema } from "./request/tool-schemas.ts";
import { cacheMark, NO_CALLS, rulesOf, type WireRules } from "./request/wire-rules.ts";
import { ServedWindows } from "./served-window.ts";
import { toModelError } from "./to-model-error.ts";
import { toDeadlines, Watchdog } from "./watchdog.ts";
import type { Wire, WireCall } from "./wires/wire.ts";

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
  const counts = new TokenCounts();
  const windows = new ServedWindows();
  let loading: Promise<readonly [typeof Sdk, Network]> | undefined;
  const load = () => (loading ??= Promise.all([loadSdk(), createNetwork()]));
  return {
    warm: async () => void (await Promise.all([load(), loadWire("responses")])),
    ask: async (original, onDelta, signal) => {
      signal.throwIfAborted();
      const request = { ...original, target: identities?.targetOf(original.target) ?? original.target };
      const endpoint = toEndpoint(request.target, environment, identities);
      const [[sdk, network], wire] = await Promise.all([load(), loadWire(request.target.api)]);
      signal.throwIfAborted();
      const asking = { sdk, wire, network, endpoint, mask: options.mask };
      const ask = withoutRefused(endpoint, (request) => askOnce({ ...asking, request }, onDelta, signal));
      return windows.check(await ask(request), request, endpoint, network.fetchFor(bareExchange(endpoint)));
    },
    count: async (original, signal) => {
      const target = identities?.targetOf(original.target) ?? original.target;
      if (target.api !== "messages" && target.api !== "gemini") return undefined;
      const endpoint = endpointIfAny(target, environment, identities);
      if (endpoint === undefined) return undefined;
      const server = `${target.api} ${endpoint.baseUrl ?? ""} ${endpoint.modelId}`;
      if (!counts.mayAsk(server, Date.now())) return undefined;
      const [[sdk, network], wire] = await Promise.all([load(), loadWire(target.api)]);
      const asking = { sdk, wire, network, endpoint, mask: options.mask };
      let counted: Counted = {};
      // A count refuses nothing itself: it is of the request without what the server is known to refuse.
      await withoutRefused(endpoint, async (request) => {
        counted = await countOnce({ ...asking, request }, signal);
        return UNASKED;
      })({ ...original, target });
      if (counted.tokens === undefined) counts.failed(server, counted.status, Date.now());
      return counted.tokens;
    },
  };
}

/** A missing key is the request's to report. */
function endpointIfAny(...its: Parameters<typeof toEndpoint>): Endpoint | undefined {
  try {
    return toEndpoint(...its);
  } catch {
    return undefined;
  }
}

/** In place of an answer. */
const UNASKED: ModelAnswer = {
  content: [],
  finish: "other",
  usage: undefined,
  firstTokenMs: 0,
  durationMs: 0,
};

interface Counted {
  readonly tokens?: number;
  readonly status?: number;
}

/** Of a document that is fetched as it is. */
const bareExchange = (endpoint: Endpoint): Parameters<Network["fetchFor"]>[0] => ({
  endpoint,
  body: {},
  fieldEdits: [],
  reading: undefined,
  onHeaders: () => undefined,
  onBytes: () => undefined,
  gatherMs: () => 0,
});

/** Sends the count of what would be sent. @throws only the signal's reason */
async function countOnce(asking: Asking, signal: AbortSignal): Promise<Counted> {
  const { network, endpoint, request } = asking;
  const { api, provider } = request.target;
  const { modelId } = endpoint;
  const wire = { api, modelId, preset: provider.preset, fieldEdits: request.fieldEdits ?? [] };
  let counted: Counted = {};
  const counting: Network = {
    fetchFor: (exchange) =>
      countingFetch(
        // The address and the fields are those of the count.
        network.fetchFor({
          ...exchange,
          endpoint: { ...endpoint, isVertexClaude: false },
          body: {},
          fieldEdits: [],
          reading: undefined,
        }),
        wire,
        (result) => (counted = result),
      ),
  };
  const nobody = { connected: () => undefined, alive: () => undefined };
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(COUNT_MS)]);
  try {
    const stream = startStream({ ...asking, network: counting }, bounded, nobody, () => undefined);
    for await (const _part of stream);
  } catch {
    // The estimate decides.
  }
  signal.throwIfAborted();
  return counted;
}

async function loadSdk(): Promise<typeof Sdk> {
  const sdk = await loadPart(import("ai"));
  // Its warnings go to the console and would mix with a command's output; what matters of them is tested here.
  globalThis.AI_SDK_LOG_WARNINGS = false;
  return sdk;
}

interface Asking {
  readonly sdk: typeof Sdk;
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
    toDeadlines(request, asking.endpoint),
    (silent) => call.abort(silent),
    () => onDelta({ type: "thinking" }),
  );
  const listener = new AnswerListener(onDelta, watchdog);
  try {
    let step: Sdk.StepResult<Sdk.ToolSet> | undefined;
    for await (const part of startStream(asking, call.signal, watchdog, (ended) => (step = ended)))
      listener.take(part);
    call.signal.throwIfAborted();
    const answer = toAnswer(step, listener.open(), request, asking.mask);
    const durationMs = performance.now() - startedAt;
    return {
      ...answer,
      firstTokenMs: (listener.firstTokenAt ?? startedAt + durationMs) - startedAt,
      durationMs,
    };
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    throw toModelError(call.signal.aborted ? call.signal.reason : error, {
      model: fullModelName(request.target.model),
      modelName: request.target.modelName,
      api: request.target.api,
      provider: request.target.provider,
      identity: asking.endpoint.identity?.name,
      nearWindow: (request.estimatedTokens ?? 0) >= windowMeasures(request.target).nearlyFullTokens,
      heard: listener.firstTokenAt !== undefined,
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

function startStream(
  { sdk, wire, network, request, endpoint }: Asking,
  signal: AbortSignal,
  watchdog: Pick<Watchdog, "connected" | "alive">,
  onStepEnd: (step: Sdk.StepResult<Sdk.ToolSet>) => void,
): AsyncIterable<Sdk.TextStreamPart<Sdk.ToolSet>> {
  const { target } = request;
  const rules = rulesOf(target);
  const hasTools = request.tools.length > 0 && (request.noCalls !== true || rules.toolChoiceNone);
  const exchange = {
    endpoint,
    body: { ...tierOf(target), ...(hasTools && request.noCalls ? NO_CALLS[target.api] : {}), ...target.body },
    fieldEdits: request.fieldEdits ?? [],
    onHeaders: () => watchdog.connected(),
    onBytes: () => watchdog.alive(),
    gatherMs: request.gatherMs ?? (() => 0),
  };
  const fetchWith: WireCall["fetchWith"] = (reading) => network.fetchFor({ ...exchange, reading });
  const effort = target.reasoning?.effort;
  return sdk.experimental_streamTextLowMemory({
    ...wire({ request, endpoint, rules, fetchWith }),
    instructions: request.system === "" ? undefined : systemOf(request, rules),
    messages: toModelMessages(request.messages, target),
    tools: hasTools ? toolsOf(request.tools, rules, sdk) : undefined,
    reasoning: effort,
    temperature: target.temperature,
    maxOutputTokens: request.maxOutputTokens,
    abortSignal: signal,
    // Temporal retries.
    maxRetries: 0,
    stopWhen: sdk.isStepCount(1),
    telemetry: { isEnabled: false },
    onStepEnd,
    // Otherwise the SDK prints errors; they are in the stream.
    onError: () => undefined,
  }).stream;
}

/** The same field on every wire except Google's, which has its own setting. */
function tierOf({ tier, api }: ModelTarget): Record<string, unknown> {
  return tier === undefined || api === "gemini" ? {} : { service_tier: tier };
}

/** Marks the system prompt's end for Anthropic's cache, independent of the messages. */
function systemOf({ system, target }: ModelRequest, rules: WireRules): Sdk.Instructions {
  const isMarked = rules.cacheMarks && target.api === "messages";
  const mark = { providerOptions: { anthropic: { cacheControl: cacheMark(target) } } };
  return { role: "system", content: system, ...(isMarked ? mark : {}) };
}

/** No validation here: invalid arguments get an error result, not a throw. */
function toolsOf(specs: readonly ToolSpec[], { schemas }: WireRules, sdk: typeof Sdk): Sdk.ToolSet {
  return Object.fromEntries(
    specs.map(({ name, description, inputSchema }) => [
      name,
      { description, inputSchema: sdk.jsonSchema(IN_SUBSET[schemas](inputSchema)) },
    ]),
  );
}

const IN_SUBSET: Readonly<Record<WireRules["schemas"], (schema: JsonObject) => Record<string, unknown>>> = {
  full: (schema) => schema,
  google: toGoogleSchema,
  moonshot: toMoonshotSchema,
};

/** The wire of an API: each is loaded when it is first named. */
const WIRES: Readonly<Record<Api, () => Promise<Wire>>> = {
  responses: async () => (await loadPart(import("./wires/responses.ts"))).responsesWire,
  chat: async () => (await loadPart(import("./wires/chat.ts"))).chatWire,
  messages: async () => (await loadPart(import("./wires/messages.ts"))).messagesWire,
  gemini: async () => (await loadPart(import("./wires/gemini.ts"))).geminiWire,
};

const loadWire = (api: Api): Promise<Wire> => WIRES[api]();

/** @returns a function that asks a provider without what it refuses, which is remembered for this process */
function createWithoutRefused(): (endpoint: Endpoint, ask: Ask) => Ask {
  // Nested: the first kind sees each refusal before the others.
  const kinds: readonly Refusals[] = [
    new ToolRefusals(),
    new FileRefusals(),
    new ThoughtRefusals(),
    new OutputRefusals(),
    new SummaryRefusals(),
    new FieldRefusals(),
  ];
  return (endpoint, ask) =>
    kinds.reduce<Ask>((next, kind) => (request) => kind.ask(request, endpoint, next), ask);
}
