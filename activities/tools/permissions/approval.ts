/** Whether a call may be run, by the session's rules and by what people answered. */
import { createHash } from "node:crypto";
import type { RunConfig } from "../../config/agent-config.ts";
import type { RunToolInput } from "../../contract/calls.ts";
import type { ToolCallPart } from "../../contract/message.ts";
import type { Queryable } from "../../store/db.ts";
import { grantsOf, isApproved } from "../../store/questions.ts";
import { judgeCall, type Verdict } from "./permissions.ts";

interface Asked {
  readonly session: {
    readonly id: string;
    readonly epoch: number;
    readonly config: Pick<RunConfig, "permissions">;
  };
  readonly call: ToolCallPart;
  readonly step: number;
  readonly index: number;
}

/** The verdict of the rules and of what was granted for the whole session. Reads nothing if no rule asks. */
export async function standingVerdict(
  db: Queryable,
  { session, call }: Omit<Asked, "step" | "index">,
): Promise<Verdict> {
  const { permissions } = session.config;
  const verdict = judgeCall(permissions, call);
  return verdict.action === "ask" ? judgeCall(permissions, call, await grantsOf(db, session.id)) : verdict;
}

/** The verdict just before the call is run: a person may have allowed just this one. */
export async function verdictNow(db: Queryable, context: Asked): Promise<Verdict> {
  const verdict = await standingVerdict(db, context);
  if (verdict.action !== "ask") return verdict;
  const { session, call, step, index } = context;
  const leave = {
    sessionId: session.id,
    epoch: session.epoch,
    id: questionId({ step, index }),
    inputHash: inputHash(call),
  };
  return (await isApproved(db, leave)) ? { action: "allow" } : verdict;
}

/** The id of a question about a call. For a server's question, a number follows the call's name. */
export const questionId = ({ step, index, about }: Pick<RunToolInput, "step" | "index" | "about">): string =>
  `s${step}c${index}${about === "egress" ? "e" : ""}`;

/** Ties a permission to exactly this call. */
export function inputHash({ toolName, input }: Pick<ToolCallPart, "toolName" | "input">): string {
  return createHash("sha256")
    .update(JSON.stringify([toolName, input]))
    .digest("hex");
}
