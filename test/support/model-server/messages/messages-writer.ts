/** Events of Anthropic's messages. Pure. Source: Anthropic's reference, "Streaming Messages". */
import {
  argumentsText,
  chunksOf,
  jsonIn,
  type AnswerWriter,
  type Answering,
  type Closing,
  type ContentPart,
  type Frame,
} from "../answer-writer.ts";
import { encryptReasoning } from "../encrypted-reasoning.ts";
import { messagesError } from "../error-body.ts";
import type { Json } from "../fields.ts";
import type { WireUsage } from "../wire.ts";

const STOP = {
  stop: "end_turn",
  "tool-calls": "tool_use",
  length: "max_tokens",
  "content-filter": "refusal",
} as const;

export interface MessagesAnswering extends Answering {
  /** The request enables thinking: without it there are no such blocks. */
  readonly thinking: boolean;
  /** `display: "omitted"`: a thinking block has a signature and no text. */
  readonly omitted: boolean;
  /** Known before the first token, and part of the first event. */
  readonly usage: WireUsage | undefined;
  /** A cache mark is set: the rest of the prompt is written to the cache. */
  readonly marked: boolean;
}

export function createMessagesWriter(answering: MessagesAnswering): AnswerWriter {
  const id = `msg_${answering.number}`;
  const content: Json[] = [];

  const event = (type: string, fields: Json = {}): string =>
    `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
  const message = (fields: Json): Json => ({
    id,
    type: "message",
    role: "assistant",
    model: answering.model,
    content: [],
    stop_reason: null,
    stop_sequence: null,
    ...fields,
  });

  function* block(whole: Json, empty: Json, deltas: Iterable<Json>): Iterable<Frame> {
    const index = content.length;
    yield { text: event("content_block_start", { index, content_block: empty }), delta: false };
    for (const delta of deltas) yield { text: event("content_block_delta", { index, delta }), delta: true };
    yield { text: event("content_block_stop", { index }), delta: false };
    content.push(whole);
  }

  function* thinking(thought: string, chunkChars: number): Iterable<Frame> {
    const visible = answering.omitted ? "" : thought;
    const signature = encryptReasoning(visible, thought);
    const deltas = [
      ...[...chunksOf(visible, chunkChars)].map((piece) => ({ type: "thinking_delta", thinking: piece })),
      { type: "signature_delta", signature },
    ];
    const empty = { type: "thinking", thinking: "", signature: "" };
    yield* block({ type: "thinking", thinking: visible, signature }, empty, deltas);
  }

  function* part(part: ContentPart, chunkChars: number): Iterable<Frame> {
    switch (part.type) {
      case "text":
      case "refusal": {
        const deltas = [...chunksOf(part.text, chunkChars)].map((text) => ({ type: "text_delta", text }));
        yield* block({ type: "text", text: part.text }, { type: "text", text: "" }, deltas);
        return;
      }
      case "reasoning":
        if (!answering.thinking) return;
        if (part.encrypted !== false && part.text === "") {
          const redacted = { type: "redacted_thinking", data: encryptReasoning("redacted", id) };
          yield* block(redacted, redacted, []);
        } else yield* thinking(part.text, chunkChars);
        return;
      case "call": {
        const text = argumentsText(part.arguments);
        const use = {
          type: "tool_use",
          id: part.callId ?? `toolu_${answering.number}_${content.length}`,
          name: part.name,
        };
        const deltas = ["", ...chunksOf(text, chunkChars)].map((piece) => ({
          type: "input_json_delta",
          partial_json: piece,
        }));
        yield* block({ ...use, input: jsonIn(text) ?? {} }, { ...use, input: {} }, deltas);
      }
    }
  }

  return {
    begin: () =>
      event("message_start", { message: message({ usage: usageOf(answering.usage, answering.marked, 1) }) }) +
      event("ping"),
    part,
    finish: (closing) =>
      event("message_delta", {
        delta: { stop_reason: STOP[closing.finish], stop_sequence: null },
        usage: { output_tokens: closing.usage?.output ?? 0 },
      }) + event("message_stop"),
    error: (code, text) =>
      `event: error\ndata: ${JSON.stringify(messagesError({ status: 529, message: text, code, param: null }))}\n\n`,
    whole: (closing: Closing) =>
      message({
        content,
        stop_reason: STOP[closing.finish],
        usage: usageOf(closing.usage, answering.marked, closing.usage?.output ?? 0),
      }),
  };
}

/** Exclusive counting: `input_tokens` is what was neither read from the cache nor written to it. */
function usageOf(usage: WireUsage | undefined, marked: boolean, output: number): Json {
  const input = usage?.input ?? 0;
  const read = marked ? (usage?.cached ?? 0) : 0;
  const written = marked ? Math.max(0, input - read - 1) : 0;
  return {
    input_tokens: input - read - written,
    cache_creation_input_tokens: written,
    cache_read_input_tokens: read,
    output_tokens: output,
    service_tier: "standard",
  };
}
