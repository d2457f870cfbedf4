/** Checks a final answer against the session's output schema. */
import { checkAnswer } from "../config/output-schema.ts";
import { answerText, type AssistantPart } from "../contract/message.ts";
import { callsOf } from "../store/transcript.ts";
import type { StepContext } from "./step-context.ts";

/** @returns what is wrong with an answer that ends the task; undefined if it does not end it, or if there is no schema */
export async function mismatchOf(
  { deps, session, input }: StepContext,
  content: readonly AssistantPart[],
  finish: string,
): Promise<{ readonly mismatch?: string }> {
  const { outputSchema } = session.config;
  // At a limit the model reports its progress in plain text.
  const isLast = finish === "stop" && input.wrapUp !== true && callsOf(content).length === 0;
  if (outputSchema === undefined || !isLast) return {};
  const checked = await checkAnswer(outputSchema, answerText(content));
  return checked.ok ? {} : { mismatch: deps.sanitizer.clean(checked.why) };
}
