/** Applies a session's permission rules to a call before it runs. */
import type { ToolFacts } from "../contract/activities.ts";
import { verdictNow } from "../tools/permissions/approval.ts";
import type { AskedCall } from "../store/asked-call.ts";
import type { Queryable } from "../store/db.ts";
import type { Session } from "../store/sessions.ts";
import type { InvokedTool } from "../tools/invoke.ts";

export const NEEDS_APPROVAL: ToolFacts = {
  outcome: "error",
  tokens: 0,
  ms: 0,
  hash: "",
  needsApproval: true,
};

/** Why the session's rules refuse a call; `ask` means that no person has allowed it yet. */
export async function refusalOf(
  db: Queryable,
  session: Session,
  { call, row }: Pick<AskedCall, "call" | "row">,
): Promise<InvokedTool | "ask" | undefined> {
  if ((session.config.permissions ?? []).length === 0 || row.status !== "pending") return undefined;
  const { step, index } = row;
  const verdict = await verdictNow(db, { session, call, step, index });
  if (verdict.action === "allow") return undefined;
  if (verdict.action === "ask") return "ask";
  const { match } = verdict.rule;
  const about = match === undefined ? "" : ` (${match})`;
  return {
    outcome: "error",
    text: `Calls like this are not allowed in this session${about}, and it was not run.`,
    files: [],
    exitCode: undefined,
    truncated: false,
  };
}
