/**
 * The model port on AI SDK 7 with @ai-sdk/openai, on both of OpenAI's wires. Only this folder imports the SDK, and it
 * does so on the first call: a process that never asks a model does not pay its 0.2–0.3 s.
 */
import type { createOpenAI } from "@ai-sdk/openai";
import type { isStepCount, jsonSchema, streamText, ToolSet } from "ai";
import { AnswerCollector, finishOf } from "./answer-collector.ts";
import { ModelError, type Model, type ModelAnswer, type ModelDelta, type ModelRequest } from "./model.ts";
import { type ToolSpec } from "../contract/tools.ts";
import type { ModelTarget, Provider } from "../config/model-target.ts";
import { type Environment, findProvider, fullModelName, missingVariables } from "../config/providers.ts";
import { toModelError } from "./to-model-error.ts";
import { toModelMessages } from "./to-model-messages.ts";
import { reportedCostUsd, trustedUsage } from "./usage.ts";
import { Watchdog } from "./watchdog.ts";

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
  readonly createOpenAI: typeof createOpenAI;
}

export interface AiSdkModel extends Model {
  /** Loads the SDK ahead of the first call. */
  warm(): Promise<void>;
}

/** The model port. Holds no connection: nothing is to be closed. */
export function createAiSdkModel(options: AiSdkOptions): AiSdkModel {
  const toolSets = new WeakMap<readonly ToolSpec[], ToolSet>();
  let loading: Promise<Sdk> | undefined;
  const load = () => (loading ??= loadSdk());
  return {
    warm: async () => void (await load()),
    ask: async (asked, onDelta, signal) => {
      signal.throwIfAborted();
      const request = asked;
      const endpoint = endpointOf(request.target, options.environment);
      const sdk = await load();
      signal.throwIfAborted();
      let tools = toolSets.get(request.tools);
      if (tools === undefined) toolSets.set(request.tools, (tools = toToolSet(request.tools, sdk)));
      return askOnce({ sdk, request, endpoint, tools, mask: options.mask }, onDelta, signal);
    },
  };
}

async function loadSdk(): Promise<Sdk> {
  const [ai, { createOpenAI }] = await Promise.all([import("ai"), import("@ai-sdk/openai")]);
  // Its warnings go to the console and would mix with a command's output; what matters of them is tested here.
  (globalThis as { AI_SDK_LOG_WARNINGS?: boolean }).AI_SDK_LOG_WARNINGS = false;
  return { streamText: ai.streamText, jsonSchema: ai.jsonSchema, isStepCount: ai.isStepCount, createOpenAI };
}

interface Endpoint {
  readonly modelId: string;
  readonly apiKey: string;
  readonly baseUrl: string | undefined;
}

/** @throws ModelError where a key or an address is not there */
function endpointOf({ model, modelName, provider: kept }: ModelTarget, environment: Environment): Endpoint {
  const provider = kept ?? providerOfOldSession(model, environment);
  const missing = provider === undefined ? [] : missingVariables(provider, environment);
  if (provider === undefined || missing.length > 0) {
    throw new ModelError(
      provider === undefined
        ? `There is no provider for ${model}. Set OPENAI_BASE_URL to a compatible server that has it.`
        : `There is no key or address for ${provider.name}. Set ${missing.join(" and ")} for the worker and resume.`,
      { class: provider === undefined ? "not-found" : "credentials" },
    );
  }
  const { baseUrl, baseUrlEnv, keyEnv } = provider;
  return {
    modelId: modelName ?? fullModelName(model).replace(/^(openai|rehearsal)\//, ""),
    apiKey: (keyEnv === undefined ? undefined : environment[keyEnv]) || "none",
    baseUrl: baseUrl ?? (baseUrlEnv === undefined ? undefined : environment[baseUrlEnv]) ?? undefined,
  };
}

/** Of a session from before there were providers. */
function providerOfOldSession(model: string, environment: Environment): Provider | undefined {
  return findProvider(model, {}, environment)?.provider;
}

/** From this share of the window on, by our count, an empty refusal means that the request does not fit. Source: ours. */
const NEAR_WINDOW = 0.8;

interface Asking {
  readonly sdk: Sdk;
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
  const watchdog = new Watchdog(request.deadlines, (silent) => call.abort(silent));
  // The SDK may be slow to notice an abort, or end the stream as if all were well; this does neither.
  const aborted = new Promise<never>((_, reject) => {
    call.signal.addEventListener("abort", () => reject(call.signal.reason as Error), { once: true });
  });
  aborted.catch(() => undefined);

  const collector = new AnswerCollector(fullModelName(request.target.model), onDelta);
  let firstTokenAt: number | undefined;
  let end: { reason: string; usage: ModelAnswer["usage"]; costUsd: number | undefined } | undefined;
  try {
    const reader = startStream(asking, call.signal, () => watchdog.connected()).getReader();
    for (;;) {
      const { done, value } = await Promise.race([reader.read(), aborted]);
      if (call.signal.aborted) throw call.signal.reason;
      if (done) break;
      if (value.type === "error") throw value.error;
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
      throw new ModelError("The provider's stream ended before its answer was complete.", {
        class: "unavailable",
      });
    }
    const content = collector.content();
    const durationMs = performance.now() - startedAt;
    return {
      content,
      finish: finishOf(end.reason, content),
      usage: end.usage,
      ...(end.costUsd === undefined ? {} : { costUsd: end.costUsd }),
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

function startStream({ sdk, request, endpoint, tools }: Asking, signal: AbortSignal, onHeaders: () => void) {
  const provider = sdk.createOpenAI({
    apiKey: endpoint.apiKey,
    ...(endpoint.baseUrl === undefined ? {} : { baseURL: endpoint.baseUrl }),
    fetch: async (input, init) => {
      const response = await fetch(input, withWellFormedBody(init));
      onHeaders();
      return response;
    },
  });
  const responses = request.target.api === "responses";
  const hasTools = request.tools.length > 0;
  return sdk.streamText({
    model: responses ? provider.responses(endpoint.modelId) : provider.chat(endpoint.modelId),
    ...(request.system === "" ? {} : { instructions: request.system }),
    messages: toModelMessages(request.messages, {
      model: fullModelName(request.target.model),
      api: responses ? "responses" : "chat",
    }),
    ...(hasTools ? { tools } : {}),
    maxOutputTokens: request.maxOutputTokens,
    maxRetries: 0,
    stopWhen: sdk.isStepCount(1),
    abortSignal: signal,
    onError: () => undefined,
    providerOptions: {
      openai: {
        strictJsonSchema: false,
        ...(responses ? { store: false } : {}),
        // Compatible chat servers refuse parameters they do not know.
        ...(responses || endpoint.baseUrl === undefined ? { promptCacheKey: request.cacheKey } : {}),
        ...(responses && hasTools ? { parallelToolCalls: true } : {}),
      },
    },
  }).stream;
}

/**
 * The last sanitizer for text: JSON.stringify writes a lone surrogate as an escape, and a provider refuses the whole
 * request for it, at every later step too. Escaped backslashes are matched first, so that a text about `\\ud800` stays.
 */
function withWellFormedBody(init: RequestInit | undefined): RequestInit | undefined {
  if (typeof init?.body !== "string" || !/\\ud[89a-f]/i.test(init.body)) return init;
  const body = init.body.replace(/\\(?:\\|ud[89a-f][0-9a-f]{2})/gi, (found) =>
    found === "\\\\" ? found : "\\ufffd",
  );
  return { ...init, body };
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
