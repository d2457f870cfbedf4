/**
 * The model port on AI SDK 7, on the wires of `wires/`. Only this folder imports the SDK, and it does so on the first
 * call: a process that never asks a model does not pay its 0.2–0.3 s.
 */
import type { Instructions, isStepCount, jsonSchema, streamText, ToolSet } from "ai";
import { AnswerCollector, finishOf } from "./answer-collector.ts";
import { ModelError, type Model, type ModelAnswer, type ModelDelta, type ModelRequest } from "./model.ts";
import { type ToolSpec } from "../contract/tools.ts";
import type { ModelTarget } from "../config/model-target.ts";
import { type Environment, fullModelName } from "../config/providers.ts";
import { deadlinesOf } from "./deadlines.ts";
import { type Endpoint, endpointOf } from "./endpoint.ts";
import { createNetwork, type Network } from "./provider-fetch.ts";
import { toModelError } from "./to-model-error.ts";
import { SummaryRefusals } from "./summary-refusals.ts";
import { toModelMessages } from "./request/to-model-messages.ts";
import { reportedCostUsd, trustedUsage } from "./usage.ts";
import { Watchdog } from "./watchdog.ts";
import { cacheMark, NO_CALLS, rulesOf, type WireRules } from "./request/wire-rules.ts";
import { ServedTier } from "./served-tier.ts";
import type { Repair } from "./stream-events.ts";
import { loadWire, type Wire } from "./wires/wire.ts";

export interface AiSdkOptions {
  /** Keys and addresses by the names of their variables, such as OPENAI_API_KEY. */
  readonly environment: Environment;
  /** Takes secrets out of a text; applied to every error's message. */
  readonly mask: (text: string) => string;
}

/** What is used of the SDK once it is loaded. */
interface Sdk {
  readonly streamText: typeof streamText;
  readonly jsonSchema: typeof jsonSchema;
  readonly isStepCount: typeof isStepCount;
  readonly network: Network;
}

export interface AiSdkModel extends Model {
  /** Loads the SDK ahead of the first call. */
  warm(): Promise<void>;
}

/** The model port. Holds no connection: nothing is to be closed. */
export function createAiSdkModel(options: AiSdkOptions): AiSdkModel {
  const toolSets = new WeakMap<readonly ToolSpec[], ToolSet>();
  const refusals = new SummaryRefusals();
  let loading: Promise<Sdk> | undefined;
  const load = () => (loading ??= loadSdk());
  return {
    warm: async () => void (await load()),
    ask: async (request, onDelta, signal) => {
      signal.throwIfAborted();
      const endpoint = endpointOf(request.target, options.environment);
      const [sdk, wire] = await Promise.all([load(), loadWire(request.target.api)]);
      signal.throwIfAborted();
      let tools = toolSets.get(request.tools);
      if (tools === undefined) toolSets.set(request.tools, (tools = toToolSet(request.tools, sdk)));
      const asking = { sdk, wire, network: sdk.network, endpoint, tools, mask: options.mask };
      return refusals.ask(request, endpoint, (one) => askOnce({ ...asking, request: one }, onDelta, signal));
    },
  };
}

async function loadSdk(): Promise<Sdk> {
  const [ai, network] = await Promise.all([import("ai"), createNetwork()]);
  // Its warnings go to the console and would mix with a command's output; what matters of them is tested here.
  (globalThis as { AI_SDK_LOG_WARNINGS?: boolean }).AI_SDK_LOG_WARNINGS = false;
  return { streamText: ai.streamText, jsonSchema: ai.jsonSchema, isStepCount: ai.isStepCount, network };
}

/** From this share of the window on, by our count, an empty refusal means that the request does not fit. Source: ours. */
const NEAR_WINDOW = 0.8;

interface Asking {
  readonly sdk: Sdk;
  readonly wire: Wire;
  readonly network: Network;
  readonly request: ModelRequest;
  readonly endpoint: Endpoint;
  readonly tools: ToolSet;
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
  // The SDK may be slow to notice an abort, or end the stream as if all were well; this does neither.
  const aborted = new Promise<never>((_, reject) => {
    call.signal.addEventListener("abort", () => reject(call.signal.reason as Error), { once: true });
  });
  aborted.catch(() => undefined);

  const collector = new AnswerCollector(fullModelName(request.target.model), onDelta);
  const reading = asking.wire.reading?.();
  const tier = request.target.tier === undefined ? undefined : new ServedTier();
  let firstTokenAt: number | undefined;
  let end: { reason: string; usage: ModelAnswer["usage"]; costUsd: number | undefined } | undefined;
  try {
    const reader = startStream(
      asking,
      call.signal,
      watchdog,
      tier?.around(reading?.repair) ?? reading?.repair,
    ).getReader();
    for (;;) {
      const { done, value } = await Promise.race([reader.read(), aborted]);
      if (call.signal.aborted) throw call.signal.reason;
      if (done) break;
      if (value.type === "error")
        throw isCutOff(value.error) ? new ModelError(CUT_OFF, { class: "unavailable" }) : value.error;
      const heard = collector.take(value);
      if (heard === "thinking") watchdog.thinking();
      if (heard === "piece") {
        firstTokenAt ??= performance.now();
        watchdog.heard();
      }
      if (value.type === "finish-step") {
        end = {
          reason: value.finishReason,
          usage: trustedUsage(value.usage, request.target.contextWindow),
          costUsd: reportedCostUsd(value.usage),
        };
      }
    }
    // The SDK's own word for a stream that closed without the provider's last event.
    if (end === undefined || end.reason === "interrupted") {
      throw new ModelError(CUT_OFF, { class: "unavailable" });
    }
    const content = collector.content(reading?.kept?.());
    const durationMs = performance.now() - startedAt;
    return {
      content,
      finish: finishOf(end.reason, content),
      usage: end.usage,
      ...(end.costUsd === undefined ? {} : { costUsd: end.costUsd }),
      ...(tier?.name === undefined ? {} : { tier: tier.name }),
      firstTokenMs: (firstTokenAt ?? startedAt + durationMs) - startedAt,
      durationMs,
    };
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    throw toModelError(call.signal.aborted ? call.signal.reason : error, {
      model: fullModelName(request.target.model),
      api: request.target.api,
      provider: request.target.provider,
      nearWindow: (request.estimatedTokens ?? 0) >= NEAR_WINDOW * request.target.contextWindow,
      mask: asking.mask,
      now: Date.now(),
    });
  } finally {
    watchdog.stop();
    signal.removeEventListener("abort", onAbort);
    // Whatever made us leave, the provider is to stop writing (and billing).
    call.abort();
  }
}

const CUT_OFF = "The provider's stream ended before its answer was complete.";

/** The chat adapter's word for the same. */
function isCutOff(error: unknown): boolean {
  return error instanceof Error && error.message.includes("ended without a finish reason");
}

function startStream(asking: Asking, signal: AbortSignal, watchdog: Watchdog, repair: Repair | undefined) {
  const { sdk, wire, network, request, endpoint, tools } = asking;
  const { target } = request;
  const rules = rulesOf(target);
  const hasTools = request.tools.length > 0 && (request.noCalls !== true || rules.toolChoiceNone);
  const fetch = network.fetchFor({
    endpoint,
    body: { ...tierOf(target), ...(hasTools && request.noCalls ? NO_CALLS[target.api] : {}), ...target.body },
    onHeaders: () => watchdog.connected(),
    onBytes: () => watchdog.alive(),
    repair,
  });
  const { model, providerOptions } = wire.settings({ request, endpoint, rules, fetch });
  const effort = target.reasoning?.effort;
  return sdk.streamText({
    model,
    ...(request.system === "" ? {} : { instructions: systemOf(request, rules) }),
    messages: toModelMessages(request.messages, target),
    ...(hasTools ? { tools } : {}),
    ...(effort === undefined ? {} : { reasoning: effort }),
    ...(target.temperature === undefined ? {} : { temperature: target.temperature }),
    maxOutputTokens: request.maxOutputTokens,
    maxRetries: 0,
    stopWhen: sdk.isStepCount(1),
    abortSignal: signal,
    onError: () => undefined,
    providerOptions,
  }).stream;
}

/** The same field on every wire but Google's, which has a setting of its own. */
function tierOf({ tier, api }: ModelTarget): Record<string, unknown> {
  return tier === undefined || api === "gemini" ? {} : { service_tier: tier };
}

/** Anthropic's caching ends where the system prompt does, whatever follows. */
function systemOf({ system, target }: ModelRequest, rules: WireRules): Instructions {
  if (!rules.cacheMarks || target.api !== "messages") return system;
  return {
    role: "system",
    content: system,
    providerOptions: { anthropic: { cacheControl: cacheMark(target) } },
  };
}

/** Tools without execute: the loop runs them. No validation here: invalid arguments get an error result, not a throw. */
function toToolSet(specs: readonly ToolSpec[], sdk: Sdk): ToolSet {
  return Object.fromEntries(
    specs.map((spec) => [
      spec.name,
      { description: spec.description, inputSchema: sdk.jsonSchema(spec.inputSchema) },
    ]),
  );
}
