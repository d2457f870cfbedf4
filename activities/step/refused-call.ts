/** What the rules of a session say of a call before it is run. */
import type { RunToolInput, ToolFacts } from "../contract/activities.ts";
import { verdictNow } from "../permissions/approval.ts";
import type { Queryable } from "../store/db.ts";
import type { Session } from "../store/sessions.ts";
import { findCall } from "../store/tool-calls.ts";
import { requestedCalls } from "../store/transcript.ts";
import type { InvokedTool } from "../tools/invoke.ts";

export const NEEDS_APPROVAL: ToolFacts = {
  outcome: "error",
  tokens: 0,
  ms: 0,
  hash: "",
  needsApproval: true,
};

/** What the session's rules have against a call; `ask`: that no person has allowed it. */
export async function refusalOf(
  db: Queryable,
  session: Session,
  { step, index }: RunToolInput,
): Promise<InvokedTool | "ask" | undefined> {
  if ((session.config.permissions ?? []).length === 0) return undefined;
  const call = (await requestedCalls(db, session.id, step))[index];
  const row = await findCall(db, session.id, step, index);
  if (call === undefined || row === undefined || row.status !== "pending") return undefined;
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
