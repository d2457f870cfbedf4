/** Makes the call ids of an answer unique in the session. */
import type { AssistantPart } from "../contract/message.ts";
import { callsOf } from "../store/transcript.ts";
import type { StepContext } from "./step-context.ts";

// Providers have been seen to reuse an id, within an answer and across a session. Calls that left the view cannot collide.
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
