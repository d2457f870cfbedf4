/** Chunks of Gemini's streamGenerateContent. Pure. Source: Google's reference, GenerateContentResponse. */
import {
  argumentsText,
  deltasOf,
  jsonIn,
  type AnswerWriter,
  type Answering,
  type Closing,
  type ContentPart,
  type Frame,
} from "../answer-writer.ts";
import { encryptReasoning } from "../encrypted-reasoning.ts";
import { geminiError } from "../error-body.ts";
import { isObject, type Json } from "../fields.ts";
import type { WireUsage } from "../wire.ts";

const FINISH = {
  stop: "STOP",
  // Gemini has no finish reason for calls.
  "tool-calls": "STOP",
  length: "MAX_TOKENS",
  "content-filter": "SAFETY",
} as const;

export interface GeminiAnswering extends Answering {
  /** `includeThoughts`: thought summaries are parts of the answer. */
  readonly thoughts: boolean;
  /** Gemini 3 and later sign the first call of a step. */
  readonly signatures: boolean;
}

export function createGeminiWriter(answering: GeminiAnswering): AnswerWriter {
  const parts: Json[] = [];
  let malformed: string | undefined;
  let calls = 0;

  const response = (candidate: Json, usage?: WireUsage): Json => ({
    candidates: [{ ...candidate, index: 0 }],
    ...(usage === undefined ? {} : { usageMetadata: usageOf(usage) }),
    modelVersion: answering.model,
    responseId: `gemini-${answering.number}`,
  });
  const data = (body: unknown): string => `data: ${JSON.stringify(body)}\r\n\r\n`;
  const chunk = (part: Json): string => data(response({ content: { role: "model", parts: [part] } }));

  function* part(part: ContentPart, chunkChars: number): Iterable<Frame> {
    switch (part.type) {
      case "text":
      case "refusal":
        parts.push({ text: part.text });
        yield* deltasOf(part.text, chunkChars, (text) => chunk({ text }));
        return;
      case "reasoning":
        if (!answering.thoughts) return;
        parts.push({ text: part.text, thought: true });
        yield* deltasOf(part.text, chunkChars, (text) => chunk({ text, thought: true }));
        return;
      case "call": {
        const args = jsonIn(argumentsText(part.arguments));
        if (!isObject(args)) {
          malformed = `Malformed function call: ${part.name}(${argumentsText(part.arguments)})`;
          return;
        }
        const signed = answering.signatures && calls === 0;
        calls += 1;
        const called = {
          functionCall: { name: part.name, args, ...(part.callId === undefined ? {} : { id: part.callId }) },
          ...(signed ? { thoughtSignature: encryptReasoning(part.name, `thought ${answering.number}`) } : {}),
        };
        parts.push(called);
        yield { text: chunk(called), delta: true };
      }
    }
  }

  const closed = (closing: Closing, content: readonly Json[]): Json => {
    const finish = malformed === undefined ? FINISH[closing.finish] : "MALFORMED_FUNCTION_CALL";
    return response(
      {
        content: { role: "model", parts: content },
        finishReason: finish,
        ...(malformed === undefined ? {} : { finishMessage: malformed }),
      },
      closing.usage,
    );
  };

  return {
    begin: () => "",
    part,
    finish: (closing) => data(closed(closing, [{ text: "" }])),
    error: (code, message) => data(geminiError({ status: 503, message, code, param: null })),
    whole: (closing) => closed(closing, parts),
  };
}

/** Thoughts are counted separately from the candidates' tokens. */
function usageOf(usage: WireUsage): Json {
  return {
    promptTokenCount: usage.input,
    candidatesTokenCount: usage.output - usage.reasoning,
    thoughtsTokenCount: usage.reasoning,
    totalTokenCount: usage.input + usage.output,
    ...(usage.cached > 0 ? { cachedContentTokenCount: usage.cached } : {}),
  };
}
