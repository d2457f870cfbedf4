/** What the workflow learns about a call that has its result, or whose result was not taken. */
import { createHash } from "node:crypto";
import type { ToolFacts } from "../contract/activities.ts";
import { retryable, rowsGone, superseded } from "../contract/failures.ts";
import type { ToolCallPart, ToolResultPart } from "../contract/message.ts";
import type { ActivityScope } from "../runtime/activity-scope.ts";
import type { Queryable } from "../store/db.ts";
import { runInCharge } from "../store/runs.ts";
import { findCall, resultOf, type LedgerRow } from "../store/tool-calls.ts";

export function hasEnded({ status }: LedgerRow): boolean {
  return status !== "pending" && status !== "running";
}

export async function endedBefore(db: Queryable, row: LedgerRow, call: ToolCallPart): Promise<ToolFacts> {
  const stored = await resultOf(db, row);
  const text = (stored?.content as [ToolResultPart] | undefined)?.[0].text ?? "";
  return {
    outcome: row.status as ToolFacts["outcome"],
    tokens: stored?.tokens ?? 0,
    ms: 0,
    hash: hashOf(call, text),
  };
}

/**
 * Why a result was refused: another attempt stored one first, another attempt is still running the call, or a newer run has
 * claimed the session. Any attempt may find this, also the one that Temporal waits for.
 * @throws Superseded (fatal); RecordMissing, CallTaken (retryable)
 */
export async function storedElsewhere(
  db: Queryable,
  { runId }: Pick<ActivityScope, "runId">,
  { row, call }: { readonly row: LedgerRow; readonly call: ToolCallPart },
): Promise<ToolFacts> {
  const [current, inCharge] = await Promise.all([
    findCall(db, row.sessionId, row.step, row.index),
    runInCharge(db, row.sessionId),
  ]);
  if (inCharge !== undefined && inCharge !== runId) throw superseded("the result of this call was dropped");
  if (!current) throw rowsGone("the result of this call was dropped");
  if (hasEnded(current)) return endedBefore(db, current, call);
  throw retryable(
    "CallTaken",
    "An earlier attempt has claimed this call again and still runs; this attempt's result was dropped. It is tried again.",
  );
}

/** Equal for the same call with the same result. Eight hex characters are plenty among a session's last calls. */
export function hashOf(call: ToolCallPart, text: string): string {
  return createHash("sha256")
    .update(JSON.stringify([call.toolName, call.input, text]))
    .digest("hex")
    .slice(0, 8);
}
