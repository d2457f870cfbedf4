/** Chunks of chat completions, in a server's style. Pure. Source: OpenAI's chat completion chunk reference. */
import {
  argumentsText,
  chunksOf,
  deltasOf,
  type AnswerWriter,
  type Answering,
  type Closing,
  type ContentPart,
  type Frame,
} from "./answer-writer.ts";
import { event } from "./dialects/chat-style.ts";
import type { ChatStyle } from "./dialects/dialect.ts";
import { encryptReasoning } from "./encrypted-reasoning.ts";
import type { WireUsage } from "./wire.ts";

type Json = Readonly<Record<string, unknown>>;

const FINISH = {
  stop: "stop",
  length: "length",
  "content-filter": "content_filter",
} as const;

interface ChatAnswering extends Answering {
  readonly includeUsage: boolean;
  readonly style: ChatStyle;
}

export function createChatWriter(answering: ChatAnswering): AnswerWriter {
  const { style } = answering;
  const { number, model } = answering;
  const base = { id: `chatcmpl-${number}`, created: Math.floor(Date.now() / 1_000), model };
  const piece = { ...base, object: "chat.completion.chunk" };
  const includeUsage = answering.includeUsage || style.alwaysUsage;
  const totals = { text: null as string | null, refusal: null as string | null, thoughts: "" };
  const calls: Json[] = [];
  let between = style.between;

  const data = (fields: Json): string => event({ ...piece, ...fields });
  const chunk = (delta: Json, finish: string | null = null, more: Json = {}): string =>
    data({
      choices: [{ index: 0, delta, logprobs: null, finish_reason: finish, ...more }],
      ...(includeUsage && style.usage === "own-chunk" ? { usage: null } : {}),
    });
  const sent = (delta: Json): string => {
    const text = chunk({ ...style.everyDelta, ...delta }) + between;
    between = "";
    return text;
  };
  const calling = (fields: Json): Frame => ({ text: sent({ tool_calls: [fields] }), delta: true });

  function* call(part: Extract<ContentPart, { type: "call" }>, chunkChars: number): Iterable<Frame> {
    const { name } = part;
    const index = calls.length;
    const id = part.callId ?? style.callId(number, index, name);
    const whole = argumentsText(part.arguments);
    const called = (args: unknown): Json => ({
      id,
      type: "function",
      function: { name, arguments: args },
      ...(style.signature && index === 0
        ? { extra_content: { google: { thought_signature: encryptReasoning(name, id) } } }
        : {}),
    });
    calls.push(called(whole));
    if (style.calls === "no-index") return yield calling(called(whole));
    if (style.calls !== "pieces")
      return yield calling({ index, ...called(style.calls === "object" ? part.arguments : whole) });
    yield calling({ index, ...called("") });
    const { name: again, ...later } = style.laterPieces;
    const named = again === undefined ? {} : { name: again };
    for (const args of chunksOf(whole, chunkChars))
      yield calling({ index, ...later, function: { ...named, arguments: args } });
  }

  function* part(part: ContentPart, chunkChars: number): Iterable<Frame> {
    switch (part.type) {
      case "text":
        totals.text = (totals.text ?? "") + part.text;
        return yield* deltasOf(part.text, chunkChars, (content) => sent({ content }));
      case "refusal":
        totals.refusal = (totals.refusal ?? "") + part.text;
        return yield* deltasOf(part.text, chunkChars, (refusal) => sent({ refusal }));
      case "reasoning":
        if (style.reasoning === "none") return;
        totals.thoughts += part.text;
        return yield* deltasOf(part.text, chunkChars, (thought) => sent(thoughtOf(style, thought)));
      case "call":
        yield* call(part, chunkChars);
    }
  }

  /** The last chunks, with the bill if the server sends it there. */
  function ending(closing: Closing): string {
    const finish = finishOf(closing);
    const choices = [{ index: 0, delta: style.everyDelta, logprobs: null, finish_reason: finish }];
    if (!includeUsage || closing.usage === undefined) return chunk({}, finish);
    const usage = style.usageOf(usageOf(closing.usage));
    switch (style.usage) {
      case "own-chunk":
        return chunk({}, finish) + data({ choices: [], usage });
      case "with-finish":
        return data({ choices, usage });
      case "in-choice":
        return chunk({}, finish, { usage });
      case "x_groq":
        return data({ choices, x_groq: { id: "req_1", usage } });
    }
  }

  const finishOf = (closing: Closing): string =>
    closing.finish === "tool-calls" ? style.finishOfCalls : FINISH[closing.finish];

  return {
    begin: () => style.opening + chunk({ role: "assistant", content: "" }),
    part,
    finish: (closing) => `${ending(closing)}data: [DONE]\n\n`,
    error: (code, message) => style.midStream({ status: 502, message, code, param: null }, piece),
    whole: (closing) => ({
      ...base,
      object: "chat.completion",
      choices: [
        {
          index: 0,
          message: {
            role: "assistant",
            content: totals.text,
            refusal: totals.refusal,
            ...(totals.thoughts === "" ? {} : thoughtOf(style, totals.thoughts)),
            ...(calls.length > 0 ? { tool_calls: calls } : {}),
          },
          logprobs: null,
          finish_reason: finishOf(closing),
        },
      ],
      usage: closing.usage === undefined ? null : style.usageOf(usageOf(closing.usage)),
    }),
  };
}

function thoughtOf(style: ChatStyle, text: string): Json {
  if (style.reasoning !== "reasoning_details") return { [style.reasoning]: text };
  return {
    reasoning: text,
    reasoning_details: [{ type: "reasoning.text", text, format: "unknown", index: 0 }],
  };
}

function usageOf(usage: WireUsage): Json {
  return {
    prompt_tokens: usage.input,
    completion_tokens: usage.output,
    total_tokens: usage.input + usage.output,
    prompt_tokens_details: { cached_tokens: usage.cached },
    completion_tokens_details: { reasoning_tokens: usage.reasoning },
  };
}
