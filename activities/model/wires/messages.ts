/** Anthropic's messages, at Anthropic and servers that speak it. */
import { createAnthropic } from "@ai-sdk/anthropic";
import { isJsonObject, toObject } from "../../text/json.ts";
import { isThinking } from "../request/wire-rules.ts";
import type { Piece, StreamReading, StreamEvent } from "../stream-events.ts";
import { NO_KEY, options, summaryOf, type WireCall, type WireSettings } from "./wire.ts";

/** Claudes that decide themselves how long to think. Source: Anthropic's guide on adaptive thinking, from Claude 4.6 on. */
const ADAPTIVE = /claude-[a-z]+-(4-[6-9]|[5-9])/;

export function messagesWire({ request, endpoint, fetchWith }: WireCall): WireSettings {
  const { target } = request;
  const provider = createAnthropic({
    apiKey: endpoint.apiKey ?? NO_KEY,
    baseURL: endpoint.baseUrl,
    fetch: fetchWith(new MessagesStream()),
  });
  const display = summaryOf(target) === null ? "omitted" : "summarized";
  return {
    model: provider(endpoint.modelId),
    providerOptions: options(
      "anthropic",
      isThinking(target) && ADAPTIVE.test(endpoint.modelId)
        ? { thinking: { type: "adaptive", display } }
        : {},
    ),
  };
}

/** By the kind of delta: the field with its text. Source: Anthropic's reference of streaming. */
const TEXTS: Readonly<Record<string, string>> = {
  text_delta: "text",
  thinking_delta: "thinking",
  input_json_delta: "partial_json",
};

/** An answer is whole once its reason for the end has come: some servers leave out the event that only closes it. */
export class MessagesStream implements StreamReading {
  #end: "none" | "said" | "closed" = "none";
  readonly whole = messageEvents;
  readonly piece = messagesPiece;

  readonly repair = (event: StreamEvent): StreamEvent => {
    const reason = toObject(event["delta"])["stop_reason"];
    if (event["type"] === "message_delta" && typeof reason === "string") this.#end = "said";
    if (event["type"] === "message_stop") this.#end = "closed";
    return event;
  };

  readonly ending = (): StreamEvent[] => (this.#end === "said" ? [{ type: "message_stop" }] : []);
}

export function messagesPiece(event: StreamEvent): Piece | undefined {
  const { type, index, delta } = event;
  if (type !== "content_block_delta" || !isJsonObject(delta)) return undefined;
  const kind = String(delta["type"]);
  const field = TEXTS[kind];
  const text = field === undefined ? undefined : delta[field];
  if (field === undefined || typeof text !== "string") return undefined;
  const saying = (piece: string) => ({ ...event, delta: { ...delta, [field]: piece } });
  return { of: `${kind} ${String(index)}`, text, with: saying };
}

/** A message of Anthropic's wire. */
export function messageEvents(body: unknown): readonly StreamEvent[] | undefined {
  if (!isJsonObject(body) || body["type"] === "error" || !Array.isArray(body["content"])) return undefined;
  const { content, stop_reason: reason, stop_sequence: sequence, ...message } = body;
  const usage = { input_tokens: 0, output_tokens: 0, ...toObject(body["usage"]) };
  return [
    {
      type: "message_start",
      message: { type: "message", role: "assistant", id: "", model: "", ...message, usage, content: [] },
    },
    ...(content as unknown[]).filter(isJsonObject).flatMap(blockEvents),
    {
      type: "message_delta",
      delta: { stop_reason: reason ?? "end_turn", stop_sequence: sequence ?? null },
      usage,
    },
    { type: "message_stop" },
  ];
}

function blockEvents(block: StreamEvent, index: number): StreamEvent[] {
  const { text, thinking, signature, input, ...rest } = block;
  const events: readonly (StreamEvent | false)[] = [
    typeof text === "string" && { type: "text_delta", text },
    typeof thinking === "string" && { type: "thinking_delta", thinking },
    typeof signature === "string" && { type: "signature_delta", signature },
    input !== undefined && { type: "input_json_delta", partial_json: JSON.stringify(input) },
  ];
  const empty = {
    text: text === undefined ? undefined : "",
    thinking: thinking === undefined ? undefined : "",
    input: input === undefined ? undefined : {},
  };
  return [
    { type: "content_block_start", index, content_block: { ...rest, ...empty } },
    ...events.flatMap((delta) => (delta === false ? [] : [{ type: "content_block_delta", index, delta }])),
    { type: "content_block_stop", index },
  ];
}
