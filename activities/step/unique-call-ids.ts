/** Ids of the calls of an answer, each once in the session. */
import type { AssistantPart } from "../contract/message.ts";
import { callsOf } from "../store/transcript.ts";
import type { StepContext } from "./step-context.ts";

// Providers have been seen to use an id twice, in one answer and over a session. What left the view cannot collide.
export function uniqueCallIds({ rows, input }: StepContext, content: AssistantPart[]): AssistantPart[] {
  const taken = new Set(
    rows
      .flatMap((row) => (row.role === "assistant" ? callsOf(row.content) : []))
      .map((call) => call.toolCallId),
  );
  let index = -1;
  return content.map((part) => {
    if (part.type !== "tool-call") return part;
    index += 1;
    const isFree = part.toolCallId !== "" && !taken.has(part.toolCallId);
    const toolCallId = isFree ? part.toolCallId : `${part.toolCallId}_s${input.step}c${index}`;
    taken.add(toolCallId);
    return { ...part, toolCallId };
  });
}
