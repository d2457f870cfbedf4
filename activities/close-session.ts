/**
 * The outcome of a run: every open call gets a result, the session its status, watchers the end.
 *
 * Idempotency key: the session's row is ended once per run (compare-and-set). Side effects: rows and an event.
 * Heartbeat: by timer. Retry class: Postgres. Runs in a scope that cannot be cancelled.
 */
import { inScope, type ActivityScope } from "./activity-scope.ts";
import type { Message, ToolResultPart } from "./context/message.ts";
import { estimateMessage } from "./context/tokens.ts";
import type { ClosedSession, CloseSessionInput } from "./contract.ts";
import type { AgentDeps } from "./deps.ts";
import { costUsd } from "./model/cost.ts";
import { lastRound } from "./store/compactions.ts";
import type { Queryable } from "./store/db.ts";
import { appendEvents } from "./store/events.ts";
import { totalUsage } from "./store/model-calls.ts";
import { endSession, findSession } from "./store/sessions.ts";
import { finishCall, openCalls } from "./store/tool-calls.ts";
import { insertMessage, lastAnswer, lockRun } from "./store/transcript.ts";

const MAX_RESULT_CHARS = 2_000;

export function createCloseSession(deps: AgentDeps) {
  return (input: CloseSessionInput): Promise<ClosedSession> =>
    inScope(deps, (scope) => closeSession(deps, scope, input));
}

async function closeSession(
  deps: AgentDeps,
  scope: ActivityScope,
  input: CloseSessionInput,
): Promise<ClosedSession> {
  const { db } = deps.store;
  const session = await findSession(db, scope.sessionId);
  const [answer, usage, rounds] = await Promise.all([
    lastAnswer(db, scope.sessionId),
    totalUsage(db, scope.sessionId),
    lastRound(db, scope.sessionId),
  ]);
  const text = (answer?.content ?? []).map((part) => (part.type === "text" ? part.text : "")).join("");
  const error = input.error && {
    type: input.error.type,
    message: deps.border.clean(input.error.message).slice(0, 1_000),
  };
  const ended = { status: input.status, result: text, error };
  if (session) {
    await db.transaction(async (tx) => {
      if (!(await lockRun(tx, session.id, scope.runId))) return;
      await interruptOpenCalls(tx, session.id);
      if (!(await endSession(tx, session.id, scope.runId, ended))) return;
      await appendEvents(tx, session.id, session.epoch, [
        {
          type: "session:ended",
          step: input.step,
          data: {
            status: input.status,
            reason: error ? `${error.type}: ${error.message}` : null,
            text,
            usage,
            costUsd: costUsd(session.config.price, usage),
            steps: input.step,
            rounds,
            durationMs: Date.now() - session.createdAt.getTime(),
          },
        },
      ]);
    });
    deps.notifier.wake(session.id);
  }
  return {
    status: input.status,
    steps: input.step,
    rounds,
    result: text.slice(0, MAX_RESULT_CHARS).toWellFormed(),
    usage,
  };
}

/** No call may stay without a result: what was never started says so, what was cut off too. */
async function interruptOpenCalls(tx: Queryable, sessionId: string): Promise<void> {
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
