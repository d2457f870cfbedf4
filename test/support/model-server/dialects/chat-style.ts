/** The stream of chat completions as OpenAI sends it; other servers differ from it. */
import { openAiError } from "../error-body.ts";
import type { ChatStyle } from "./dialect.ts";

export const OPENAI_CHAT: ChatStyle = {
  // OpenAI's own chat wire shows no reasoning.
  reasoning: "none",
  opening: "",
  between: "",
  everyDelta: {},
  callId: (answer, index) => `call_${answer}_${index}`,
  calls: "pieces",
  laterPieces: {},
  signature: false,
  usage: "own-chunk",
  alwaysUsage: false,
  usageOf: (usage) => usage,
  finishOfCalls: "tool_calls",
  midStream: (fault) => event(openAiError(fault)),
};

export function event(body: unknown): string {
  return `data: ${JSON.stringify(body)}\n\n`;
}

/** Nine letters and digits. */
export function nineChars(answer: number, index: number): string {
  return `c${answer.toString(36)}x${index.toString(36)}`.padEnd(9, "0").slice(0, 9);
}
