/**
 * Chat completions, from any server. One adapter for all: it tolerates streams that differ from OpenAI's, and OpenAI itself
 * differs only by two names in the rules.
 */
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import type { JSONValue } from "ai";
import type { ModelTarget } from "../../config/model-target.ts";
import { isJsonObject, toObject } from "../../text/json.ts";
import { COMPATIBLE_KEY } from "../request/reasoning.ts";
import { cacheMark, markedTurns, type WireRules } from "../request/wire-rules.ts";
import type { Piece, StreamEvent } from "../stream-events.ts";
import { usageInChunk } from "../usage.ts";
import { toCacheKey, NO_KEY, options, type WireCall, type WireSettings } from "./wire.ts";

const OPENAI = "https://api.openai.com/v1";

export function chatWire({ request, endpoint, rules, fetchWith }: WireCall): WireSettings {
  const { target } = request;
  const stream = new ChatStream();
  const provider = createOpenAICompatible({
    name: COMPATIBLE_KEY,
    baseURL: endpoint.baseUrl ?? OPENAI,
    apiKey: endpoint.apiKey ?? NO_KEY,
    includeUsage: true,
    supportsMultiPartToolContent: rules.filesInResults,
    transformRequestBody: (body) => toChatBody(body, target, rules),
    fetch: fetchWith(stream),
    metadataExtractor: {
      extractMetadata: () => Promise.resolve(undefined),
      createStreamExtractor: () => ({
        processChunk: () => undefined,
        buildMetadata: () => ({ [COMPATIBLE_KEY]: stream.kept() }),
      }),
    },
  });
  return {
    model: provider.chatModel(endpoint.modelId),
    providerOptions: options(COMPATIBLE_KEY, {
      ...(target.verbosity === undefined ? {} : { textVerbosity: target.verbosity }),
      ...(rules.cacheKey ? { prompt_cache_key: toCacheKey(request.cacheKey) } : {}),
      ...(rules.cacheKey && target.cache === "24h" ? { prompt_cache_retention: "24h" } : {}),
    }),
  };
}

type ChatBody = Record<string, unknown>;
interface ChatMessage extends ChatBody {
  readonly role: string;
  readonly content?: unknown;
}

/** Adapts a chat request to its server where the SDK has no setting for it. */
export function toChatBody(body: ChatBody, target: ModelTarget, rules: WireRules): ChatBody {
  const { max_tokens: limit, messages, temperature, ...rest } = body;
  // OpenAI's models that reason refuse a temperature.
  const isCool = rules.maxTokensField === "max_completion_tokens";
  return {
    ...rest,
    ...(limit === undefined ? {} : { [rules.maxTokensField]: limit }),
    ...(temperature === undefined || isCool ? {} : { temperature }),
    messages: messagesOf(messages as readonly ChatMessage[], target, rules),
  };
}

function messagesOf(
  messages: readonly ChatMessage[],
  target: ModelTarget,
  { systemRole, cacheMarks }: WireRules,
): ChatMessage[] {
  const turns = markedTurns(messages);
  return messages.map((message, index) => {
    const isSystem = message.role === "system";
    const named = isSystem ? { ...message, role: systemRole } : message;
    const detailed = target.imageDetail === undefined ? named : withDetail(named, target.imageDetail);
    return cacheMarks && (isSystem || turns.has(index)) ? withCacheMark(detailed, target) : detailed;
  });
}

function withDetail(message: ChatMessage, detail: string): ChatMessage {
  if (!Array.isArray(message.content)) return message;
  const content = (message.content as ChatBody[]).map((part) =>
    part["type"] === "image_url"
      ? { ...part, image_url: { ...(part["image_url"] as ChatBody), detail } }
      : part,
  );
  return { ...message, content };
}

/** The last of a message's parts gets the mark. Source: OpenRouter's guide on prompt caching. */
function withCacheMark(message: ChatMessage, target: ModelTarget): ChatMessage {
  const { content } = message;
  const parts =
    typeof content === "string" ? [{ type: "text", text: content }] : (content as ChatBody[] | undefined);
  const last = parts?.at(-1);
  if (parts === undefined || last === undefined) return message;
  return { ...message, content: [...parts.slice(0, -1), { ...last, cache_control: cacheMark(target) }] };
}

const FIELDS = ["reasoning_content", "reasoning"] as const;
const TEXTS: ReadonlySet<string> = new Set(["content", ...FIELDS]);

/**
 * Repairs what compatible servers send that the SDK would misread or refuse, and keeps what it would drop: an error in the middle,
 * and the reasoning's own form. Sources: docs/models.md, each row from public reports.
 */
export class ChatStream {
  #field: string | undefined;
  readonly #details: StreamEvent[] = [];
  #serviceTier: string | undefined;

  /** One chunk as the SDK reads it; undefined for one without content. */
  readonly repair = (chunk: StreamEvent): StreamEvent | undefined => {
    const { choices, service_tier: tier } = chunk;
    if (typeof tier === "string") this.#serviceTier = tier;
    const choice = Array.isArray(choices) ? (choices[0] as unknown) : undefined;
    const error = errorOf(chunk, choice);
    if (error !== undefined) return { error };
    if (!isJsonObject(choice)) return this.#withoutChoice(chunk);
    const { error: _, ...rest } = chunk;
    const delta = isJsonObject(choice["delta"]) ? this.#delta(choice["delta"]) : choice["delta"];
    const usage = usageInChunk(chunk);
    return { ...rest, ...(usage === undefined ? {} : { usage }), choices: [{ ...choice, delta }] };
  };

  /** An answer that came as one value. */
  readonly whole = (body: unknown): readonly StreamEvent[] | undefined => {
    if (errorOf(toObject(body), undefined) !== undefined) return undefined;
    return chatEvents(body)?.flatMap((chunk): StreamEvent[] => {
      const repaired = this.repair(chunk);
      return repaired === undefined ? [] : [repaired];
    });
  };

  /** A chunk that has a text and nothing else. */
  readonly piece = (chunk: StreamEvent): Piece | undefined => {
    const [choice, ...others] = Array.isArray(chunk["choices"]) ? (chunk["choices"] as unknown[]) : [];
    if (others.length > 0 || !isJsonObject(choice) || !isJsonObject(choice["delta"])) return undefined;
    if (chunk["usage"] != null || chunk["error"] != null || choice["finish_reason"] != null) return undefined;
    const fields = Object.entries(choice["delta"]).filter(([, value]) => value != null);
    const [field = "", text] = fields[0] ?? [];
    if (fields.length !== 1 || typeof text !== "string" || !TEXTS.has(field)) return undefined;
    const saying = (piece: string) => ({ ...chunk, choices: [{ ...choice, delta: { [field]: piece } }] });
    return { of: field, text, with: saying };
  };

  /** What the package would drop: how the server names its reasoning, its parts as they must be sent back, and its tier of service. */
  kept(): Record<string, JSONValue> {
    return {
      ...(this.#field === undefined || this.#field === FIELDS[0] ? {} : { field: this.#field }),
      ...(this.#details.length === 0 ? {} : { details: this.#details as JSONValue[] }),
      ...(this.#serviceTier === undefined ? {} : { serviceTier: this.#serviceTier }),
    };
  }

  /** A bill is passed on. A keep-alive is dropped: the watchdog has seen its bytes already. */
  #withoutChoice(chunk: StreamEvent): StreamEvent | undefined {
    const usage = usageInChunk(chunk);
    return usage === undefined ? undefined : { ...chunk, usage, choices: [] };
  }

  #delta(delta: StreamEvent): StreamEvent {
    const { role: _, reasoning_details: details, tool_calls: calls, ...others } = delta;
    const rest: Record<string, unknown> = { ...others };
    for (const field of FIELDS) {
      if (typeof rest[field] !== "string") delete rest[field];
      else if (rest[field] !== "") this.#field ??= field;
    }
    if (Array.isArray(details)) {
      const parts = details.filter(isJsonObject);
      for (const part of parts) this.#keep(part);
      const texts = parts
        .map((part) => part["text"] ?? part["summary"])
        .filter((text) => typeof text === "string");
      if (FIELDS.every((field) => rest[field] === undefined) && texts.length > 0)
        rest["reasoning"] = texts.join("");
    }
    return {
      ...rest,
      ...(Array.isArray(calls) ? { tool_calls: calls.filter(isJsonObject).map(callOf) } : {}),
    };
  }

  /** Pieces of one text become one part, the form in which it must be sent back. Source: OpenRouter's guide on reasoning tokens. */
  #keep(part: StreamEvent): void {
    const last = this.#details.at(-1);
    const key = ["text", "summary"].find((name) => typeof part[name] === "string");
    const follows = last !== undefined && last["type"] === part["type"] && last["index"] === part["index"];
    const filled = Object.fromEntries(Object.entries(part).filter(([, value]) => value !== null));
    if (!follows || part["type"] === "reasoning.encrypted") this.#details.push(filled);
    else
      Object.assign(
        last,
        filled,
        key === undefined ? {} : { [key]: `${textOf(last[key])}${textOf(part[key])}` },
      );
  }
}

/** An answer that broke off without a word on why may be given whole the next time. */
const BROKE_OFF = "server_error";

/** The error is next to the choices, within one, or only in its finish reason. */
function errorOf(chunk: StreamEvent, choice: unknown): StreamEvent | undefined {
  const own = isJsonObject(choice) ? choice["error"] : undefined;
  const error = chunk["error"] ?? own;
  if (isJsonObject(error)) return { ...error, message: wordsOf(error) };
  if (typeof error === "string" && error !== "") return { code: BROKE_OFF, message: error };
  const message = chunk["msg"] ?? chunk["message"] ?? chunk["error_msg"];
  if (choice === undefined && typeof message === "string" && message !== "") return { ...chunk, message };
  if (!isJsonObject(choice) || choice["finish_reason"] !== "error") return undefined;
  return {
    code: BROKE_OFF,
    message: "The provider ended its answer in the middle with the finish reason `error`.",
  };
}

/** A router adds the provider's own words to its own. */
function wordsOf(error: StreamEvent): string {
  const raw = isJsonObject(error["metadata"]) ? textOf(error["metadata"]["raw"]) : "";
  return [textOf(error["message"]), raw].filter((text) => text !== "").join(": ") || JSON.stringify(error);
}

function callOf(call: StreamEvent): StreamEvent {
  const written = isJsonObject(call["function"]) ? call["function"] : {};
  const { arguments: input } = written;
  const isText = typeof input === "string" || input === null || input === undefined;
  return { ...call, function: isText ? written : { ...written, arguments: JSON.stringify(input) } };
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** A chat completion as one chunk. */
export function chatEvents(body: unknown): readonly StreamEvent[] | undefined {
  const choices = toObject(body)["choices"];
  const choice = Array.isArray(choices) ? (choices[0] as unknown) : undefined;
  if (!isJsonObject(body) || !isJsonObject(choice)) return undefined;
  const { message, text, ...rest } = choice;
  const { content = text, tool_calls: calls, ...others } = toObject(message);
  const delta = {
    ...others,
    content: joinedText(content),
    ...(Array.isArray(calls)
      ? { tool_calls: calls.map((call, index) => ({ index, ...toObject(call) })) }
      : {}),
  };
  return [
    {
      ...body,
      object: "chat.completion.chunk",
      choices: [{ finish_reason: "stop", ...rest, index: 0, delta }],
    },
  ];
}

/** A text may be in parts. */
function joinedText(content: unknown): string | null {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return null;
  return content
    .map((part) => toObject(part)["text"])
    .filter((text) => typeof text === "string")
    .join("");
}
