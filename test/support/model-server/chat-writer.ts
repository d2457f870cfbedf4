/** Chunks of chat completions, in a server's style. Pure. Source: OpenAI's chat completion chunk reference. */
import {
  argumentsText,
  chunksOf,
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
  const base = {
    id: `chatcmpl-${answering.number}`,
    created: Math.floor(Date.now() / 1_000),
    model: answering.model,
  };
  const includeUsage = answering.includeUsage || style.alwaysUsage;
  const said = { text: null as string | null, refusal: null as string | null, thoughts: "" };
  const calls: Json[] = [];
  let between = style.between;

  const data = (fields: Json): string => event({ ...base, object: "chat.completion.chunk", ...fields });
  const chunk = (delta: Json, finish: string | null = null, more: Json = {}): string =>
    data({
      choices: [{ index: 0, delta, logprobs: null, finish_reason: finish, ...more }],
      ...(includeUsage && style.usage === "own-chunk" ? { usage: null } : {}),
    });
  const frame = (delta: Json): Frame => {
    const text = chunk({ ...style.everyDelta, ...delta }) + between;
    between = "";
    return { text, delta: true };
  };
  function* pieces(text: string, chunkChars: number, deltaOf: (piece: string) => Json): Iterable<Frame> {
    for (const piece of chunksOf(text, chunkChars)) yield frame(deltaOf(piece));
  }

  function* call(one: Extract<ContentPart, { type: "call" }>, chunkChars: number): Iterable<Frame> {
    const index = calls.length;
    const id = one.callId ?? style.callId(answering.number, index, one.name);
    const whole = argumentsText(one.arguments);
    const signed =
      style.signature && index === 0
        ? { extra_content: { google: { thought_signature: encryptReasoning(one.name, id) } } }
        : {};
    calls.push({ id, type: "function", function: { name: one.name, arguments: whole }, ...signed });
    if (style.calls !== "pieces") {
      const args = style.calls === "object" ? one.arguments : whole;
      const place = style.calls === "no-index" ? {} : { index };
      const called = { id, type: "function", function: { name: one.name, arguments: args }, ...signed };
      yield frame({ tool_calls: [{ ...place, ...called }] });
      return;
    }
    yield frame({
      tool_calls: [{ index, id, type: "function", function: { name: one.name, arguments: "" }, ...signed }],
    });
    const { name, ...later } = style.laterPieces;
    for (const piece of chunksOf(whole, chunkChars)) {
      const named = name === undefined ? {} : { name };
      yield frame({ tool_calls: [{ index, ...later, function: { ...named, arguments: piece } }] });
    }
  }

  function* part(one: ContentPart, chunkChars: number): Iterable<Frame> {
    switch (one.type) {
      case "text":
        said.text = (said.text ?? "") + one.text;
        return yield* pieces(one.text, chunkChars, (content) => ({ content }));
      case "refusal":
        said.refusal = (said.refusal ?? "") + one.text;
        return yield* pieces(one.text, chunkChars, (refusal) => ({ refusal }));
      case "reasoning":
        if (style.reasoning === "none") return;
        said.thoughts += one.text;
        return yield* pieces(one.text, chunkChars, (piece) => thoughtOf(style, piece));
      case "call":
        yield* call(one, chunkChars);
    }
  }

  const finishOf = (closing: Closing): string =>
    closing.finish === "tool-calls" ? style.finishOfCalls : FINISH[closing.finish];
  const billOf = (closing: Closing): Json | undefined =>
    includeUsage && closing.usage !== undefined ? style.usageOf(usageOf(closing.usage)) : undefined;

  return {
    begin: () => style.opening + chunk({ role: "assistant", content: "" }),
    part,
    finish: (closing) =>
      `${ending(style, { base, finish: finishOf(closing), bill: billOf(closing), chunk })}data: [DONE]\n\n`,
    error: (code, message) =>
      style.midStream(
        { status: 502, message, code, param: null },
        { ...base, object: "chat.completion.chunk" },
      ),
    whole: (closing) => ({
      ...base,
      object: "chat.completion",
      choices: [
        {
          index: 0,
          message: {
            role: "assistant",
            content: said.text,
            refusal: said.refusal,
            ...(said.thoughts === "" ? {} : thoughtOf(style, said.thoughts)),
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

/** The last chunks, with the bill if the server sends it there. */
function ending(
  style: ChatStyle,
  {
    base,
    finish,
    bill,
    chunk,
  }: {
    readonly base: Json;
    readonly finish: string;
    readonly bill: Json | undefined;
    readonly chunk: (delta: Json, finish: string, more?: Json) => string;
  },
): string {
  const object = "chat.completion.chunk";
  const choices = [{ index: 0, delta: style.everyDelta, logprobs: null, finish_reason: finish }];
  if (bill === undefined) return chunk({}, finish);
  switch (style.usage) {
    case "own-chunk":
      return chunk({}, finish) + event({ ...base, object, choices: [], usage: bill });
    case "with-finish":
      return event({ ...base, object, choices, usage: bill });
    case "in-choice":
      return chunk({}, finish, { usage: bill });
    case "x_groq":
      return event({ ...base, object, choices, x_groq: { id: "req_1", usage: bill } });
  }
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
