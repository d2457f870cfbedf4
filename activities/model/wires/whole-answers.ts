/** Answers that a server gives as one JSON value although a stream was asked for, as the events of their wire. Pure. */
import { isJsonObject, objectOf } from "../../contract/json-object.ts";
import type { StreamEvent } from "../stream-events.ts";

type Events = readonly StreamEvent[] | undefined;

/** A chat completion as one chunk. */
export function chatEvents(body: unknown): Events {
  const choices = objectOf(body)["choices"];
  const choice = Array.isArray(choices) ? (choices[0] as unknown) : undefined;
  if (!isJsonObject(body) || !isJsonObject(choice)) return undefined;
  const { message, text, ...rest } = choice;
  const { content = text, tool_calls: calls, ...others } = objectOf(message);
  const delta = {
    ...others,
    content: textOf(content),
    ...(Array.isArray(calls)
      ? { tool_calls: calls.map((call, index) => ({ index, ...objectOf(call) })) }
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
function textOf(content: unknown): string | null {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return null;
  return content
    .map((part) => objectOf(part)["text"])
    .filter((text) => typeof text === "string")
    .join("");
}

/** A response of the Responses wire. */
export function responseEvents(body: unknown): Events {
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
    const place = {
      output_index: index,
      item_id: typeof item["id"] === "string" ? item["id"] : `item_${index}`,
    };
    const own = { status: "completed", ...item, id: place.item_id };
    const { type, item: begun, deltas } = pieces(own);
    return [
      { type: "response.output_item.added", ...place, item: begun },
      ...deltas.map((delta, at) => ({ type, ...place, content_index: at, summary_index: at, delta })),
      { type: "response.output_item.done", ...place, item: own },
    ];
  });
}

function pieces(item: StreamEvent) {
  const texts = (parts: unknown): string[] =>
    (Array.isArray(parts) ? parts : []).flatMap((part) => {
      const { text, refusal } = objectOf(part);
      return [text ?? refusal].filter((said) => typeof said === "string");
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

/** A message of Anthropic's wire. */
export function messageEvents(body: unknown): Events {
  if (!isJsonObject(body) || body["type"] === "error" || !Array.isArray(body["content"])) return undefined;
  const { content, stop_reason: reason, stop_sequence: sequence, ...message } = body;
  const usage = { input_tokens: 0, output_tokens: 0, ...objectOf(body["usage"]) };
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
  const said: readonly (StreamEvent | false)[] = [
    typeof text === "string" && { type: "text_delta", text },
    typeof thinking === "string" && { type: "thinking_delta", thinking },
    typeof signature === "string" && { type: "signature_delta", signature },
    input !== undefined && { type: "input_json_delta", partial_json: JSON.stringify(input) },
  ];
  const empty = {
    ...(text === undefined ? {} : { text: "" }),
    ...(thinking === undefined ? {} : { thinking: "" }),
    ...(input === undefined ? {} : { input: {} }),
  };
  return [
    { type: "content_block_start", index, content_block: { ...rest, ...empty } },
    ...said.flatMap((delta) => (delta === false ? [] : [{ type: "content_block_delta", index, delta }])),
    { type: "content_block_stop", index },
  ];
}

/** Google gives one object, or a list of the chunks that it would have streamed. */
export function geminiEvents(body: unknown): Events {
  const chunks = [body].flat().filter(isJsonObject);
  const isAnswer = chunks.some((chunk) => "candidates" in chunk || "promptFeedback" in chunk);
  return isAnswer && !chunks.some((chunk) => isJsonObject(chunk["error"])) ? chunks : undefined;
}
