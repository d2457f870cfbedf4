/** Chunks of chat completions. Pure. Source: OpenAI's chat completion chunk reference. */
import {
  argumentsText,
  chunksOf,
  type AnswerWriter,
  type Answering,
  type Closing,
  type ContentPart,
  type Frame,
} from "./answer-writer.ts";
import type { WireUsage } from "./wire.ts";

const FINISH = {
  stop: "stop",
  "tool-calls": "tool_calls",
  length: "length",
  "content-filter": "content_filter",
} as const;

export function createChatWriter(answering: Answering & { readonly includeUsage: boolean }): AnswerWriter {
  const base = {
    id: `chatcmpl-${answering.number}`,
    created: Math.floor(Date.now() / 1_000),
    model: answering.model,
  };
  let text: string | null = null;
  let refusal: string | null = null;
  const calls: { id: string; type: "function"; function: { name: string; arguments: string } }[] = [];

  const data = (fields: Record<string, unknown>): string =>
    `data: ${JSON.stringify({ ...base, object: "chat.completion.chunk", ...fields })}\n\n`;
  const chunk = (delta: Record<string, unknown>, finish: string | null = null): string =>
    data({
      choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
      ...(answering.includeUsage ? { usage: null } : {}),
    });

  function* part(one: ContentPart, chunkChars: number): Iterable<Frame> {
    switch (one.type) {
      case "text":
        text = (text ?? "") + one.text;
        for (const piece of chunksOf(one.text, chunkChars))
          yield { text: chunk({ content: piece }), delta: true };
        return;
      case "refusal":
        refusal = (refusal ?? "") + one.text;
        for (const piece of chunksOf(one.text, chunkChars))
          yield { text: chunk({ refusal: piece }), delta: true };
        return;
      case "reasoning":
        // OpenAI's own chat wire shows no reasoning; compatible servers send it under this name.
        for (const piece of chunksOf(one.text, chunkChars))
          yield { text: chunk({ reasoning_content: piece }), delta: true };
        return;
      case "call": {
        const index = calls.length;
        const id = one.callId ?? `call_${answering.number}_${index}`;
        const whole = argumentsText(one.arguments);
        calls.push({ id, type: "function", function: { name: one.name, arguments: whole } });
        yield {
          text: chunk({
            tool_calls: [{ index, id, type: "function", function: { name: one.name, arguments: "" } }],
          }),
          delta: true,
        };
        for (const piece of chunksOf(whole, chunkChars)) {
          yield { text: chunk({ tool_calls: [{ index, function: { arguments: piece } }] }), delta: true };
        }
      }
    }
  }

  return {
    begin: () => chunk({ role: "assistant", content: "" }),
    part,
    finish: (closing) =>
      chunk({}, FINISH[closing.finish]) +
      (answering.includeUsage && closing.usage !== undefined
        ? data({ choices: [], usage: usageOf(closing.usage) })
        : "") +
      "data: [DONE]\n\n",
    error: (code, message) =>
      `data: ${JSON.stringify({ error: { message, type: "server_error", param: null, code } })}\n\n`,
    whole: (closing: Closing) => ({
      ...base,
      object: "chat.completion",
      choices: [
        {
          index: 0,
          message: {
            role: "assistant",
            content: text,
            refusal,
            ...(calls.length > 0 ? { tool_calls: calls } : {}),
          },
          logprobs: null,
          finish_reason: FINISH[closing.finish],
        },
      ],
      usage: closing.usage === undefined ? null : usageOf(closing.usage),
    }),
  };
}

function usageOf(usage: WireUsage): unknown {
  return {
    prompt_tokens: usage.input,
    completion_tokens: usage.output,
    total_tokens: usage.input + usage.output,
    prompt_tokens_details: { cached_tokens: usage.cached },
    completion_tokens_details: { reasoning_tokens: usage.reasoning },
  };
}
