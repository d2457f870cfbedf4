/** Stores the result of a call of `delegate`, once. */
import type { ToolFacts } from "../contract/activities.ts";
import type { ToolCallPart, ToolOutcome, ToolResultPart } from "../contract/message.ts";
import type { ActivityScope } from "../runtime/activity-scope.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import { resultEvent } from "../store/call-events.ts";
import { hashOf, storedElsewhere } from "../step/ended-call.ts";
import { keepResult } from "../store/commit-step.ts";
import type { NewEvent } from "../store/event.ts";
import type { Session } from "../store/sessions.ts";
import { callKey, type LedgerRow } from "../store/tool-calls.ts";
import { reportTool, textsOfCall } from "../runtime/telemetry/report.ts";
import { estimateMessage } from "../contract/request-size.ts";

interface Call {
  readonly session: Session;
  /** As it is now, with the fence of its claim. */
  readonly row: LedgerRow;
  readonly call: ToolCallPart;
}

interface Result {
  readonly outcome: ToolOutcome;
  readonly text: string;
  readonly truncated: boolean;
  readonly durationMs: number;
  readonly events?: readonly NewEvent[];
}

/** @throws Superseded (fatal) if a newer run has the session; RecordMissing, CallTaken (retryable) */
export async function storeDelegateResult(
  deps: Pick<AgentDeps, "store" | "notifier" | "telemetry" | "sanitizer">,
  scope: Pick<ActivityScope, "runId" | "attempt" | "elapsedMs" | "lostAttempts">,
  { session, row, call }: Call,
  { outcome, text, truncated, durationMs, events = [] }: Result,
): Promise<ToolFacts> {
  const { toolCallId, toolName } = call;
  const part: ToolResultPart = { type: "tool-result", toolCallId, toolName, outcome, text };
  const message = { role: "tool", content: [part] } as const;
  const tokens = estimateMessage(message, session.config);
  const stored = await keepResult(
    deps.store,
    {
      runId: scope.runId,
      call: row,
      fence: row.fence,
      outcome,
      exitCode: undefined,
      truncated,
      content: message.content,
      tokens,
      epoch: session.epoch,
      attempt: scope.attempt,
      events: [resultEvent(row, { outcome, text, durationMs, truncated }), ...events],
    },
    durationMs,
  );
  if (stored) {
    const report = {
      step: row.step,
      attempt: scope.attempt,
      name: toolName,
      callKey: callKey(row),
      callId: toolCallId,
    };
    reportTool({ deps, scope, session }, { ...report, outcome, durationMs }, textsOfCall(call.input, text));
    deps.notifier.wake(session.id);
    return { outcome, tokens, ms: durationMs, hash: hashOf(call, text) };
  }
  return storedElsewhere(deps.store.db, scope, { row, call });
}
