/** What the workflow learns about a call that has its result. */
import { createHash } from "node:crypto";
import type { ToolFacts } from "../contract/activities.ts";
import type { ToolCallPart, ToolResultPart } from "../contract/message.ts";
import type { Queryable } from "../store/db.ts";
import { resultOf, type LedgerRow } from "../store/tool-calls.ts";

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

/** Equal for the same call with the same result. Eight hex characters are plenty among a session's last calls. */
export function hashOf(call: ToolCallPart, text: string): string {
  return createHash("sha256")
    .update(JSON.stringify([call.toolName, call.input, text]))
    .digest("hex")
    .slice(0, 8);
}
