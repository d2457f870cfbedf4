/** No call stays without a result. */
import type { Message, ToolResultPart } from "./context/message.ts";
import { estimateMessage } from "./context/tokens.ts";
import type { Queryable } from "./store/db.ts";
import { finishCall, openCalls } from "./store/tool-calls.ts";
import { insertMessage } from "./store/transcript.ts";

/**
 * Gives every open call of the live line its result: what was never started says so, what was cut off too. For a run that
 * ends, and for one that takes up a session whose last run could not end itself: a result that came later, when its
 * call is compacted, would stand in the view alone.
 */
export async function interruptOpenCalls(tx: Queryable, sessionId: string): Promise<void> {
  for (const call of await openCalls(tx, sessionId)) {
    const begun = call.status === "running";
    const part: ToolResultPart = {
      type: "tool-result",
      toolCallId: call.callId,
      toolName: call.name,
      outcome: begun ? "unknown" : "interrupted",
      text: begun
        ? "This call was started, and the run ended before its outcome was known. Inspect before repeating it."
        : "The run was stopped before this call was started.",
    };
    const message: Message = { role: "tool", content: [part] };
    const row = {
      epoch: call.epoch,
      step: call.step,
      slot: `tool:${call.index}`,
      kind: "tool",
      message,
      tokens: estimateMessage(message),
    } as const;
    if (
      await finishCall(tx, call, call.fence, { outcome: part.outcome, exitCode: undefined, truncated: false })
    ) {
      await insertMessage(tx, sessionId, call.sequence, row);
    }
  }
}
