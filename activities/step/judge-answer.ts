/** Whether a stored answer without a call is what ends the task: the words of a model, and what the session's schema asks for. */
import { prefixOf } from "../context/request.ts";
import { checkAnswer } from "../config/output-schema.ts";
import { answerText, type AssistantPart } from "../contract/message.ts";
import { writtenCalls } from "../model/written-calls.ts";
import { callsOf } from "../store/transcript.ts";
import type { StepContext } from "./step-context.ts";

export interface Lacks {
  /** What is wrong with an answer that is not JSON matching the session's schema. */
  readonly mismatch?: string;
  /** The tool of which the answer is, or ends in, a call that was not made. */
  readonly wroteCall?: string;
}

/** @returns what keeps an answer from ending the task; nothing if it ends it, or if it cannot end it anyway */
export async function judgeAnswer(
  { deps, session, input }: StepContext,
  content: readonly AssistantPart[],
  finish: string,
): Promise<Lacks> {
  const { outputSchema } = session.config;
  // At a limit the model reports its progress in plain text.
  if (finish !== "stop" || input.wrapUp === true || callsOf(content).length > 0) return {};
  const text = answerText(content);
  const checked = outputSchema === undefined ? undefined : await checkAnswer(outputSchema, text);
  if (checked?.ok === true) return {};
  const [call] = writtenCalls(text, prefixOf(session, deps.tools).tools)?.calls ?? [];
  return {
    ...(checked === undefined ? {} : { mismatch: deps.sanitizer.clean(checked.why) }),
    ...(call === undefined ? {} : { wroteCall: call.toolName }),
  };
}
