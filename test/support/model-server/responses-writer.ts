/** Events of the Responses API. Pure. Source: OpenAI's streaming events reference. */
import {
  argumentsText,
  chunksOf,
  type AnswerWriter,
  type Answering,
  type Closing,
  type ContentPart,
  type Frame,
} from "./answer-writer.ts";
import { encryptReasoning } from "./encrypted-reasoning.ts";
import type { WireUsage } from "./wire.ts";

type Item = Record<string, unknown>;

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
  const frame = (type: string, fields: Item, delta = false): Frame => ({ text: event(type, fields), delta });
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

  function* message(
    part: Extract<ContentPart, { type: "text" | "refusal" }>,
    chunkChars: number,
  ): Iterable<Frame> {
    const at = output.length;
    const item = { id: itemId("msg"), type: "message", role: "assistant" };
    const kind = part.type === "text" ? "output_text" : "refusal";
    const content =
      part.type === "text"
        ? { type: kind, text: part.text, annotations: [] }
        : { type: kind, refusal: part.text };
    const where = { item_id: item.id, output_index: at, content_index: 0 };
    yield frame("response.output_item.added", {
      output_index: at,
      item: { ...item, status: "in_progress", content: [] },
    });
    yield frame("response.content_part.added", { ...where, part: { ...content, [part.type]: "" } });
    for (const delta of chunksOf(part.text, chunkChars)) {
      yield frame(`response.${kind}.delta`, { ...where, delta }, true);
    }
    yield frame(`response.${kind}.done`, { ...where, [part.type]: part.text });
    yield frame("response.content_part.done", { ...where, part: content });
    const done = { ...item, status: "completed", content: [content] };
    output.push(done);
    yield frame("response.output_item.done", { output_index: at, item: done });
  }

  function* reasoning(
    part: Extract<ContentPart, { type: "reasoning" }>,
    chunkChars: number,
  ): Iterable<Frame> {
    const at = output.length;
    const item = { id: itemId("rs"), type: "reasoning" };
    const where = { item_id: item.id, output_index: at, summary_index: 0 };
    const encrypted = answering.encrypted && part.encrypted !== false;
    yield frame("response.output_item.added", {
      output_index: at,
      item: { ...item, summary: [], encrypted_content: null },
    });
    const shown = answering.summary ? part.text : "";
    if (shown !== "") {
      yield frame("response.reasoning_summary_part.added", {
        ...where,
        part: { type: "summary_text", text: "" },
      });
      for (const delta of chunksOf(shown, chunkChars)) {
        yield frame("response.reasoning_summary_text.delta", { ...where, delta }, true);
      }
      yield frame("response.reasoning_summary_text.done", { ...where, text: shown });
      yield frame("response.reasoning_summary_part.done", {
        ...where,
        part: { type: "summary_text", text: shown },
      });
    }
    const done = {
      ...item,
      summary: shown === "" ? [] : [{ type: "summary_text", text: shown }],
      encrypted_content: encrypted ? encryptReasoning(item.id, part.text) : null,
    };
    output.push(done);
    yield frame("response.output_item.done", { output_index: at, item: done });
  }

  function* call(part: Extract<ContentPart, { type: "call" }>, chunkChars: number): Iterable<Frame> {
    const at = output.length;
    const text = argumentsText(part.arguments);
    const item = {
      id: itemId("fc"),
      type: "function_call",
      call_id: part.callId ?? itemId("call"),
      name: part.name,
    };
    const where = { item_id: item.id, output_index: at };
    yield frame("response.output_item.added", {
      output_index: at,
      item: { ...item, status: "in_progress", arguments: "" },
    });
    for (const delta of chunksOf(text, chunkChars)) {
      yield frame("response.function_call_arguments.delta", { ...where, delta }, true);
    }
    if (part.cut === true) return;
    yield frame("response.function_call_arguments.done", { ...where, arguments: text });
    const done = { ...item, status: "completed", arguments: text };
    output.push(done);
    yield frame("response.output_item.done", { output_index: at, item: done });
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
