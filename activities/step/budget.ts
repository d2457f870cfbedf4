/** Questions about a limit that a session has reached: their rows and events, and how far the operator's policy lets it be raised. */
import type { OperatorPolicy } from "../config/operator-policy.ts";
import { budgetOptions, budgetText, type OpenBudget, type ReachedLimit } from "../contract/limits.ts";
import type { RunPolicy } from "../contract/run-policy.ts";
import type { Queryable } from "../store/db.ts";
import { openQuestion, type QuestionOption, type QuestionRow } from "../store/questions.ts";
import type { Session } from "../store/sessions.ts";

/** How much more the operator's policy lets a session have, in USD or steps. */
export function roomFor(policy: OperatorPolicy | undefined, { limit, used, of }: ReachedLimit): number {
  const most = limit === "cost" ? policy?.max.costUsd : policy?.max.steps;
  return Math.max(0, (most ?? Infinity) - Math.max(used, of));
}

/** Whether a session may make no more requests, and no one can be asked for more. */
export function isSpent(
  policy: OperatorPolicy | undefined,
  { maxCostUsd, asks }: Pick<RunPolicy, "maxCostUsd" | "asks">,
  usedUsd: number,
): boolean {
  if (maxCostUsd === undefined || usedUsd < maxCostUsd) return false;
  const reached = { limit: "cost", used: usedUsd, of: maxCostUsd } as const;
  return asks.atLimit !== true || budgetOptions("cost", maxCostUsd, roomFor(policy, reached)) === undefined;
}

interface OpenedBudget {
  readonly row: QuestionRow;
  readonly isNew: boolean;
  readonly options: readonly string[];
}

/**
 * Finds or creates the row of a question about a limit: a run that was reset while it waited finds its question in an earlier
 * epoch. @returns undefined if the limit may not be raised
 */
export async function openBudget(
  tx: Queryable,
  session: Pick<Session, "id" | "epoch">,
  { id, step, offer, ...reached }: OpenBudget,
  most = Infinity,
): Promise<OpenedBudget | undefined> {
  const options = budgetOptions(reached.limit, offer, most);
  if (options === undefined) return undefined;
  const opened = await openQuestion(tx, {
    sessionId: session.id,
    epoch: session.epoch,
    id,
    step,
    callIndex: null,
    kind: "budget",
    text: budgetText(reached),
    options: options.map((label) => ({ label })),
    defaultText: null,
    inputHash: null,
    expiresInMs: undefined,
  });
  return { ...opened, options };
}

export const budgetAsked = ({ id, kind, text, options, step }: QuestionRow, attempt: number) => ({
  type: "question:asked" as const,
  step,
  attempt,
  data: { id, kind, text, options: options as QuestionOption[] | null, default: null, expiresAt: null },
});
