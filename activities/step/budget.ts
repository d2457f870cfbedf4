/** What a session has spent against its limits, and the questions about a limit that it has reached. */
import type { OperatorPolicy } from "../config/operator-policy.ts";
import { budgetOptions, budgetText, type OpenBudget, type ReachedLimit } from "../contract/limits.ts";
import type { RunPolicy } from "../contract/run-policy.ts";
import { untilDayMs } from "../store/budgets.ts";
import type { Queryable } from "../store/db.ts";
import { openQuestion, type QuestionOption, type QuestionRow } from "../store/questions.ts";
import type { Session } from "../store/sessions.ts";
import { lostRates } from "../config/cost.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import type { NewEvent } from "../store/event.ts";
import { recordLostCalls, spentUsd } from "../store/model-calls.ts";
import { loadConfig } from "../store/stored-settings.ts";
import type { StepContext } from "./step-context.ts";

/** How much more the operator's policy lets a session have, in USD or steps. */
export function mayBeAdded(policy: OperatorPolicy | undefined, { limit, used, of }: ReachedLimit): number {
  // What the session itself may cost stays limited.
  if (limit === "budget") return policy?.onBudget === "stop" ? 0 : Infinity;
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
  return (
    asks.atLimit !== true || budgetOptions("cost", maxCostUsd, mayBeAdded(policy, reached)) === undefined
  );
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
  const { budget } = reached;
  const opened = await openQuestion(tx, {
    sessionId: session.id,
    epoch: session.epoch,
    id,
    step,
    callIndex: null,
    kind: "budget",
    text: budgetText(reached),
    options: options.map((label) => ({ label })),
    defaultText: budget === undefined ? null : BEGINS_ANEW,
    inputHash: null,
    expiresInMs: budget === undefined ? undefined : await untilDayMs(tx, budget.before),
  });
  return { ...opened, options };
}

/** What happens without an answer. */
const BEGINS_ANEW = "it goes on by itself, since the budget begins anew";

export const budgetAsked = (
  { id, kind, text, options, step, defaultText, expiresAt }: QuestionRow,
  attempt: number,
) => ({
  type: "question:asked" as const,
  step,
  attempt,
  data: {
    id,
    kind,
    text,
    options: options as QuestionOption[] | null,
    default: defaultText,
    expiresAt: expiresAt?.toISOString() ?? null,
  },
});

/** Whose answer to a question about a budget counts; undefined means everybody's, as there is nobody whom it concerns. */
export function toAnswerers(
  { approvers = [] }: Pick<OperatorPolicy, "approvers">,
  owner: string | undefined,
): readonly string[] | undefined {
  const names = [...new Set([...(owner === undefined ? [] : [owner]), ...approvers])];
  return names.length === 0 ? undefined : names;
}

/** What a session has cost against its limit. */
interface Spent {
  readonly before: number;
  readonly after: number;
}

/** USD of the session before and with this answer; undefined if nothing limits it. */
export async function spentWith({ deps, session }: StepContext, costUsd: number): Promise<Spent | undefined> {
  if (session.config.limits.maxCostUsd === undefined) return undefined;
  const before = await spentUsd(deps.store.db, session.id);
  return { before, after: before + costUsd };
}

/** Like `spentWith`, plus the requests that earlier attempts lost with their workers. Call it after this answer is stored. */
export async function withLost({ deps, session }: StepContext): Promise<number> {
  await recordLost(deps, session);
  return spentUsd(deps.store.db, session.id);
}

/** Counts the requests that earlier attempts lost. Call it while no request of the session is under way. */
export async function recordLost(
  { store: { db } }: Pick<AgentDeps, "store">,
  { id, config }: Pick<Session, "id" | "config">,
): Promise<void> {
  // Read the stored configuration: `config` may have a fallback model here.
  await recordLostCalls(db, id, lostRates((await loadConfig(db, id)) ?? config));
}

/** The limit of a delegate as it is now: an answer to its parent's question may have raised it since the step began. */
export async function currentDelegateLimit(
  { store }: Pick<AgentDeps, "store">,
  { id, parentId, config }: Session,
): Promise<Pick<RunPolicy, "maxCostUsd">> {
  if (parentId === undefined || config.limits.maxCostUsd === undefined) return {};
  const { maxCostUsd } = ((await loadConfig(store.db, id)) ?? config).limits;
  return maxCostUsd === undefined ? {} : { maxCostUsd };
}

/** Share of the limit at which people are warned. Chosen: as budget alarms usually do. */
const NEAR = 0.8;

export function nearLimit({ session, input }: StepContext, spent: Spent | undefined): NewEvent[] {
  const { maxCostUsd } = session.config.limits;
  if (spent === undefined || maxCostUsd === undefined) return [];
  if (spent.before >= NEAR * maxCostUsd || spent.after < NEAR * maxCostUsd) return [];
  const data = { limit: "cost", used: spent.after, max: maxCostUsd } as const;
  return [{ type: "limit:near", step: input.step, data }];
}

/** For the Web UI, which shows the sum. Rounded, since it stands in the history. */
export function costFacts(sessionUsd: number | undefined, stepUsd: number | null | undefined) {
  if (sessionUsd !== undefined) return { costUsd: sessionUsd };
  return stepUsd == null ? {} : { stepCostUsd: Number(stepUsd.toFixed(6)) };
}
