/** Whether a last answer is what the session was asked for. */
import { checkAnswer } from "../config/output-schema.ts";
import { answerText, type AssistantPart } from "../contract/message.ts";
import { callsOf } from "../store/transcript.ts";
import type { StepContext } from "./step-context.ts";

/** What is wrong with an answer that ends the task; nothing if it ends none, or no schema was given. */
export async function mismatchOf(
  { deps, session, input }: StepContext,
  content: readonly AssistantPart[],
  finish: string,
): Promise<{ readonly mismatch?: string }> {
  const { outputSchema } = session.config;
  // At a limit the model says where things stand, in words.
  const isLast = finish === "stop" && input.wrapUp !== true && callsOf(content).length === 0;
  if (outputSchema === undefined || !isLast) return {};
  const checked = await checkAnswer(outputSchema, answerText(content));
  return checked.ok ? {} : { mismatch: deps.sanitizer.clean(checked.why) };
}
