/** OpenAI's Responses, at OpenAI, Azure and servers that speak it. */
import { createOpenAI } from "@ai-sdk/openai";
import { isJsonObject, toObject } from "../../text/json.ts";
import { isThinking } from "../request/wire-rules.ts";
import type { Piece, StreamReading, StreamEvent } from "../stream-events.ts";
import { toCacheKey, NO_KEY, options, summaryOf, type WireCall, type WireSettings } from "./wire.ts";

export function responsesWire({ request, endpoint, rules, fetchWith }: WireCall): WireSettings {
  const { target } = request;
  const provider = createOpenAI({
    apiKey: endpoint.apiKey ?? NO_KEY,
    baseURL: endpoint.baseUrl,
    fetch: fetchWith(new ResponsesStream()),
  });
  return {
    model: provider.responses(endpoint.modelId),
    providerOptions: options("openai", {
      store: false,
      strictJsonSchema: false,
      // Sent only to models that reason: those the package knows by name, and those that the configuration marks.
      reasoningSummary: summaryOf(target),
      ...(isThinking(target) ? { forceReasoning: true } : {}),
      ...(target.verbosity === undefined ? {} : { textVerbosity: target.verbosity }),
      ...(rules.cacheKey ? { promptCacheKey: toCacheKey(request.cacheKey) } : {}),
      ...(rules.cacheKey && target.cache === "24h" ? { promptCacheRetention: "24h" } : {}),
      ...(request.tools.length > 0 ? { parallelToolCalls: true } : {}),
    }),
  };
}

/** Repairs what servers other than OpenAI send on this wire, which the SDK would refuse or drop. Sources: docs/models.md. */
export class ResponsesStream implements StreamReading {
  #hasItems = false;
  readonly piece = responsesPiece;

  /** Some servers give an answer's items only in its last event. */
  readonly repair = (event: StreamEvent): StreamEvent | readonly StreamEvent[] | undefined => {
    const { type, response } = event;
    if (typeof type === "string" && type.startsWith("response.output_")) this.#hasItems = true;
    const repaired = repairResponsesEvent(event);
    const isLast = type === "response.completed" || type === "response.incomplete";
    if (!isLast || this.#hasItems || repaired === undefined) return repaired;
    const output = isJsonObject(response) ? response["output"] : undefined;
    return Array.isArray(output) ? [...outputEvents(output).flatMap(mended), repaired] : repaired;
  };

  readonly whole = (body: unknown): readonly StreamEvent[] | undefined =>
    responseEvents(body)?.flatMap(mended);
}

const mended = (event: StreamEvent): readonly StreamEvent[] => {
  const repaired = repairResponsesEvent(event);
  return repaired === undefined ? [] : [repaired];
};

/** One event as the SDK reads it; undefined for one that is not needed. */
function repairResponsesEvent(event: StreamEvent): StreamEvent | undefined {
  switch (event["type"]) {
    case undefined:
      return isJsonObject(event["error"]) ? event : undefined;
    case "response.output_text.annotation.added":
    // The package validates these, two of them before the first token, and reads nothing of them.
    case "response.in_progress":
    case "response.content_part.added":
    case "response.content_part.done":
    case "response.output_text.done":
      return undefined;
    // vLLM and LM Studio send a model's full reasoning where OpenAI sends a summary.
    case "response.reasoning_text.delta":
      return withId({ ...event, type: "response.reasoning_summary_text.delta", summary_index: 0 });
    case "response.completed":
    case "response.incomplete":
      return isJsonObject(event["response"])
        ? { ...event, response: { ...event["response"], ...outputOf(event["response"]) } }
        : event;
    default:
      return withId(event);
  }
}

/** Texts, summaries and arguments arrive in deltas, each for its place. */
export function responsesPiece(event: StreamEvent): Piece | undefined {
  const { type, delta: text } = event;
  if (typeof type !== "string" || !type.endsWith(".delta") || typeof text !== "string") return undefined;
  const position = ["item_id", "output_index", "content_index", "summary_index"].map((name) => event[name]);
  return { of: [type, ...position].join(" "), text, with: (delta) => ({ ...event, delta }) };
}

/** Gives items without an id one by their place. */
function withId(event: StreamEvent): StreamEvent {
  const index = event["output_index"];
  const defaultId = `item_${typeof index === "number" ? index : 0}`;
  if (isJsonObject(event["item"])) return { ...event, item: itemOf(event["item"], defaultId) };
  return "output_index" in event && typeof event["item_id"] !== "string"
    ? { ...event, item_id: defaultId }
    : event;
}

function outputOf({ output }: StreamEvent): StreamEvent {
  if (!Array.isArray(output)) return {};
  return {
    output: output.map(
      (item, index) => (isJsonObject(item) ? itemOf(item, `item_${index}`) : item) as unknown,
    ),
  };
}

function itemOf(item: StreamEvent, defaultId: string): StreamEvent {
  const { content, arguments: input } = item;
  return {
    ...item,
    ...(typeof item["id"] === "string" ? {} : { id: defaultId }),
    ...(isJsonObject(input) ? { arguments: JSON.stringify(input) } : {}),
    // Annotations are dropped: nothing here reads them, and there are many kinds.
    ...(Array.isArray(content) && item["type"] === "message"
      ? {
          content: content.map(
            (part) => (isJsonObject(part) ? { ...part, annotations: [] } : part) as unknown,
          ),
        }
      : {}),
  };
}

/** A response of the Responses wire. */
export function responseEvents(body: unknown): readonly StreamEvent[] | undefined {
  if (!isJsonObject(body) || !Array.isArray(body["output"])) return undefined;
  if (isJsonObject(body["error"])) return undefined;
  const isCut = body["status"] === "incomplete";
  const response = { created_at: 0, model: "", ...body };
  return [
    { type: "response.created", response },
    ...outputEvents(body["output"]),
    { type: isCut ? "response.incomplete" : "response.completed", response },
  ];
}

/** The items of a response, as they would have been streamed. */
export function outputEvents(output: readonly unknown[]): StreamEvent[] {
  return output.filter(isJsonObject).flatMap((item, index) => {
    const position = {
      output_index: index,
      item_id: typeof item["id"] === "string" ? item["id"] : `item_${index}`,
    };
    const own = { status: "completed", ...item, id: position.item_id };
    const { type, item: begun, deltas } = pieces(own);
    return [
      { type: "response.output_item.added", ...position, item: begun },
      ...deltas.map((delta, at) => ({ type, ...position, content_index: at, summary_index: at, delta })),
      { type: "response.output_item.done", ...position, item: own },
    ];
  });
}

function pieces(item: StreamEvent) {
  const texts = (parts: unknown): string[] =>
    (Array.isArray(parts) ? parts : []).flatMap((part) => {
      const { text, refusal } = toObject(part);
      return [text ?? refusal].filter((piece) => typeof piece === "string");
    });
  if (item["type"] === "message")
    return {
      type: "response.output_text.delta",
      item: { ...item, content: [] },
      deltas: texts(item["content"]),
    };
  if (item["type"] === "reasoning")
    return {
      type: "response.reasoning_summary_text.delta",
      item: { ...item, summary: [] },
      deltas: texts(item["summary"]),
    };
  return {
    type: "response.function_call_arguments.delta",
    item: { ...item, arguments: "" },
    deltas: typeof item["arguments"] === "string" ? [item["arguments"]] : [],
  };
}
