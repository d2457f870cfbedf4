/** Makes sure that no call stays without a result. */
import type { Message, ToolResultPart } from "../contract/message.ts";
import { estimateMessage } from "../contract/request-size.ts";
import { failOpenDelegations } from "../store/delegations.ts";
import type { Queryable } from "../store/db.ts";
import type { NewEvent } from "../store/event.ts";
import { appendEvents } from "../store/events.ts";
import { withdrawOpen } from "../store/questions.ts";
import { resultEvent, finishCall, openCalls, type LedgerRow } from "../store/tool-calls.ts";
import { insertMessage } from "../store/transcript.ts";
import { log } from "@temporalio/activity";
import { reasonOf } from "../contract/errors.ts";
import type { AgentDeps } from "./deps.ts";
import type { Session } from "../store/sessions.ts";

type OpenEnd = Pick<ToolResultPart, "outcome" | "text">;

const interruptedEnd = ({ status }: LedgerRow): OpenEnd =>
  status === "running"
    ? {
        outcome: "unknown",
        text: "This call was started, and the run ended before its outcome was known. Inspect before repeating it.",
      }
    : { outcome: "interrupted", text: "The run was stopped before this call was started." };

/** For calls that the run has finished, and whose results a restored database lacks. */
export const missingEnd = (): OpenEnd => ({
  outcome: "unknown",
  text: "The result of this call is missing: the record of the session was restored from an older copy. The call was probably run. Look at what it changed before you repeat it.",
});

/**
 * Gives every open call of the session's current rows its result and its event: whether it was never started or was cut off.
 * Questions that no one waits for are withdrawn.
 * For a run that ends, and for a run that resumes a session whose last run could not do this itself: a result that came later,
 * after its call was compacted, would be in the view without its call.
 * @param epoch the session's current one, in which the events are written
 * @param how.endOf how such a call ended, if the run was not just stopped
 * @param how.goesOn the run goes on, and may have questions that block no call
 * @returns the calls that a server runs as a task, which no one waits for any more
 */
export async function interruptOpenCalls(
  tx: Queryable,
  sessionId: string,
  epoch: number,
  how: { readonly endOf?: (call: LedgerRow) => OpenEnd; readonly goesOn?: boolean } = {},
): Promise<LedgerRow[]> {
  const { endOf = interruptedEnd, goesOn = false } = how;
  const open = await openCalls(tx, sessionId);
  const events: NewEvent[] = [];
  for (const call of open) {
    const part: ToolResultPart = {
      type: "tool-result",
      toolCallId: call.callId,
      toolName: call.name,
      ...endOf(call),
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
      const { outcome, text } = part;
      events.push({ ...resultEvent(call, { outcome, text, durationMs: call.runningMs }), step: call.step });
    }
  }
  if (events.length > 0) await failOpenDelegations(tx, sessionId);
  events.unshift(...(await withdrawOpen(tx, sessionId, { reason: "stopped", isOver: !goesOn })));
  await appendEvents(tx, sessionId, epoch, events);
  return open.filter(({ mcpTask }) => mcpTask !== null);
}

// Cancels tasks of MCP servers that no one waits for any more.

/** Informs their servers, in parallel with the work: whether a task ends is up to the server. */
export function endTasks(
  { mcp }: Pick<AgentDeps, "mcp">,
  session: Pick<Session, "id" | "config">,
  calls: readonly Pick<LedgerRow, "mcpServer" | "mcpTask" | "step">[],
): void {
  for (const { mcpServer: name, mcpTask: task, step } of calls) {
    const settings = name === null ? undefined : session.config.mcpServers?.[name];
    if (mcp === undefined || name === null || task === null || settings === undefined) continue;
    mcp.cancelTask({ sessionId: session.id, name, settings }, task).catch((error: unknown) => {
      log.warn("a server could not be asked to cancel a task", {
        server: name,
        step,
        reason: reasonOf(error),
      });
    });
  }
}
