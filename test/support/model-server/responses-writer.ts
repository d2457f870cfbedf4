/** Events of the Responses API. Pure. Source: OpenAI's streaming events reference. */
import {
  argumentsText,
  deltasOf,
  type AnswerWriter,
  type Answering,
  type Closing,
  type ContentPart,
  type Frame,
} from "./answer-writer.ts";
import { encryptReasoning } from "./encrypted-reasoning.ts";
import type { WireUsage } from "./wire.ts";

type Item = Record<string, unknown>;
type Part<Type extends ContentPart["type"]> = Extract<ContentPart, { type: Type }>;

interface ResponsesAnswering extends Answering {
  /** The request asked for encrypted reasoning. */
  readonly encrypted: boolean;
  /** The request asked for a summary of the reasoning; otherwise there is none. */
  readonly summary: boolean;
}

export function createResponsesWriter(answering: ResponsesAnswering): AnswerWriter {
  const id = `resp_${answering.number}`;
  const createdAt = Math.floor(Date.now() / 1_000);
  const output: Item[] = [];
  let sequence = 0;

  const event = (type: string, fields: Item): string =>
    `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: sequence++, ...fields })}\n\n`;
  const frame = (type: string, fields: Item): Frame => ({ text: event(type, fields), delta: false });
  const response = (status: string, rest: Item = {}): Item => ({
    id,
    object: "response",
    created_at: createdAt,
    status,
    model: answering.model,
    output,
    error: null,
    incomplete_details: null,
    usage: null,
    ...rest,
  });
  const itemId = (prefix: string): string => `${prefix}_${answering.number}_${output.length}`;

  /** One item, with what is sent between its beginning and its end. Without `done` it stays unfinished. */
  function* item(open: Item, inside: Iterable<Frame>, completed: Item | undefined): Iterable<Frame> {
    const at = output.length;
    yield frame("response.output_item.added", { output_index: at, item: open });
    yield* inside;
    if (completed === undefined) return;
    output.push(completed);
    yield frame("response.output_item.done", { output_index: at, item: completed });
  }

  const deltas = (type: string, where: Item, text: string, chunkChars: number): Iterable<Frame> =>
    deltasOf(text, chunkChars, (delta) => event(type, { ...where, delta }));

  function message(part: Part<"text" | "refusal">, chunkChars: number): Iterable<Frame> {
    const opened = { id: itemId("msg"), type: "message", role: "assistant" };
    const kind = part.type === "text" ? "output_text" : "refusal";
    const annotations = part.type === "text" ? { annotations: [] } : {};
    const content = { type: kind, [part.type]: part.text, ...annotations };
    const where = { item_id: opened.id, output_index: output.length, content_index: 0 };
    function* inside() {
      yield frame("response.content_part.added", { ...where, part: { ...content, [part.type]: "" } });
      yield* deltas(`response.${kind}.delta`, where, part.text, chunkChars);
      yield frame(`response.${kind}.done`, { ...where, [part.type]: part.text });
      yield frame("response.content_part.done", { ...where, part: content });
    }
    return item({ ...opened, status: "in_progress", content: [] }, inside(), {
      ...opened,
      status: "completed",
      content: [content],
    });
  }

  function reasoning(part: Part<"reasoning">, chunkChars: number): Iterable<Frame> {
    const opened = { id: itemId("rs"), type: "reasoning" };
    const where = { item_id: opened.id, output_index: output.length, summary_index: 0 };
    const encrypted = answering.encrypted && part.encrypted !== false;
    const visible = answering.summary ? part.text : "";
    const summary = { type: "summary_text", text: visible };
    function* inside() {
      if (visible === "") return;
      const kind = "response.reasoning_summary";
      yield frame(`${kind}_part.added`, { ...where, part: { ...summary, text: "" } });
      yield* deltas(`${kind}_text.delta`, where, visible, chunkChars);
      yield frame(`${kind}_text.done`, { ...where, text: visible });
      yield frame(`${kind}_part.done`, { ...where, part: summary });
    }
    return item({ ...opened, summary: [], encrypted_content: null }, inside(), {
      ...opened,
      summary: visible === "" ? [] : [summary],
      encrypted_content: encrypted ? encryptReasoning(opened.id, part.text) : null,
    });
  }

  function call(part: Part<"call">, chunkChars: number): Iterable<Frame> {
    const text = argumentsText(part.arguments);
    const callId = part.callId ?? itemId("call");
    const opened = { id: itemId("fc"), type: "function_call", call_id: callId, name: part.name };
    const where = { item_id: opened.id, output_index: output.length };
    const kind = "response.function_call_arguments";
    function* inside() {
      yield* deltas(`${kind}.delta`, where, text, chunkChars);
      if (part.cut !== true) yield frame(`${kind}.done`, { ...where, arguments: text });
    }
    const completed = { ...opened, status: "completed", arguments: text };
    return item(
      { ...opened, status: "in_progress", arguments: "" },
      inside(),
      part.cut === true ? undefined : completed,
    );
  }

  function closed(closing: Closing): Item {
    const reason = {
      length: "max_output_tokens",
      "content-filter": "content_filter",
      stop: null,
      "tool-calls": null,
    }[closing.finish];
    return response(reason === null ? "completed" : "incomplete", {
      incomplete_details: reason === null ? null : { reason },
      usage: usageOf(closing.usage),
    });
  }

  return {
    begin: () =>
      event("response.created", { response: response("in_progress") }) +
      event("response.in_progress", { response: response("in_progress") }),
    part: (part, chunkChars) => {
      if (part.type === "call") return call(part, chunkChars);
      return part.type === "reasoning" ? reasoning(part, chunkChars) : message(part, chunkChars);
    },
    finish: (closing) => {
      const final = closed(closing);
      return event(`response.${String(final["status"])}`, { response: final });
    },
    error: (code, message) => event("error", { code, message, param: null }),
    whole: closed,
  };
}

function usageOf(usage: WireUsage | undefined): unknown {
  if (usage === undefined) return null;
  return {
    input_tokens: usage.input,
    input_tokens_details: { cached_tokens: usage.cached },
    output_tokens: usage.output,
    output_tokens_details: { reasoning_tokens: usage.reasoning },
    total_tokens: usage.input + usage.output,
  };
}
