/** A batch: what its workflow and its activities exchange, when more is started, when it stops, and how it ended. */
import type { AttemptDelivery } from "./attempts.ts";
import type { Precedence } from "./run-policy.ts";

/** Name under which the workflow is registered. */
export const BATCH_WORKFLOW_TYPE = "sessionBatch";

/** Session ids contain no colon, so a batch and a session never use the same workflow id. */
const PREFIX = "batch:";

export const batchWorkflowId = (name: string): string => `${PREFIX}${name}`;
export const batchOfWorkflow = (workflowId: string): string => workflowId.slice(PREFIX.length);

export interface LookAtBatchInput {
  /** Started sessions whose end has not been seen yet. */
  readonly open: readonly string[];
  /** Ask the open sessions to cancel. */
  readonly cancel?: true;
}

export interface EndedItem {
  readonly sessionId: string;
  readonly status: "completed" | "failed" | "cancelled" | "max_steps";
  /** Type of the failure that ended the session. */
  readonly failure?: string;
}

/** The states of a batch's items. */
export interface BatchFigures {
  readonly total: number;
  readonly completed: number;
  /** Ended without being completed. */
  readonly failed: number;
  /** How many of the running sessions wait for a person. */
  readonly waits: number;
  readonly costUsd: number;
}

export interface BatchLook {
  readonly ended: readonly EndedItem[];
  readonly figures: BatchFigures;
  readonly concurrency: number;
  /** This many failures of one kind in a row end the batch. */
  readonly stopAfter?: number;
  readonly maxCostUsd?: number;
  /** Poll interval for session ends that Temporal does not report. */
  readonly lookMs: number;
  /** Its items are attempts at one task: the best is chosen at the end. */
  readonly chooses?: true;
  /** An attempt has passed, and the others are not wanted any more. */
  readonly decided?: true;
  /** Whether the namespace knows the search attribute `AgentBatch`. */
  readonly searchAttributes?: true;
}

interface TakeBatchItemsInput {
  /** Position of the last item taken; 0 at first. */
  readonly after: number;
  readonly count: number;
}

export interface TakenItem {
  readonly ordinal: number;
  readonly sessionId: string;
  /** The task on one line, bounded. */
  readonly about: string;
  /** Priority of the item's work; absent means the default. */
  readonly precedence?: Precedence;
  /** The session already had a run: it is followed, not started. */
  readonly begun?: true;
}

/**
 * Why nothing more is started: everything was started, too many sessions failed in the same way, the money is spent, an attempt has
 * passed, or a person cancelled.
 */
export type CloseReason = "done" | "failures" | "cost" | "decided" | "cancelled";

interface CloseBatchInput {
  readonly reason: CloseReason;
  /** The chosen attempt was to be delivered, and its session did not do so: it runs again, or its run failed. */
  readonly undelivered?: true;
}

/** What a batch's run returns, and what the Web UI shows as its result. */
export interface ClosedBatch extends BatchFigures {
  readonly status: "completed" | "failed" | "stopped" | "cancelled";
}

export interface BatchActivities {
  /** Stores the ends of items whose sessions have ended, and returns the batch's state. */
  lookAtBatch(input: LookAtBatchInput): Promise<BatchLook>;
  /** The next items, each with its session's row. */
  takeBatchItems(input: TakeBatchItemsInput): Promise<readonly TakenItem[]>;
  /** Chooses the best of a batch's attempts, once. @returns what is to be delivered, if anything is */
  chooseAttempt(): Promise<AttemptDelivery | undefined>;
  /** Stores how the batch ended. */
  closeBatch(input: CloseBatchInput): Promise<ClosedBatch>;
}

/** Consecutive failures of one kind. */
export interface Streak {
  readonly failure: string;
  readonly count: number;
}

/** The streak after these items ended, in order. Cancelled sessions do not count, as they say nothing about the tasks. */
export function streakAfter(
  ended: readonly EndedItem[],
  before: Streak | undefined,
  stopAfter = Infinity,
): Streak | undefined {
  let streak = before;
  for (const { status, failure } of ended) {
    // Once the streak is long enough, items that end at the same time do not change it.
    if ((streak?.count ?? 0) >= stopAfter) break;
    if (status === "cancelled") continue;
    const kind = status === "completed" ? undefined : (failure ?? status);
    streak =
      kind === undefined
        ? undefined
        : { failure: kind, count: streak?.failure === kind ? streak.count + 1 : 1 };
  }
  return streak;
}

/** Why nothing more is started. @returns undefined if more sessions may start */
export function stopReason(
  { stopAfter, maxCostUsd, figures }: Pick<BatchLook, "stopAfter" | "maxCostUsd" | "figures">,
  streak: Streak | undefined,
): "failures" | "cost" | undefined {
  if (stopAfter !== undefined && (streak?.count ?? 0) >= stopAfter) return "failures";
  return maxCostUsd !== undefined && figures.costUsd >= maxCostUsd ? "cost" : undefined;
}

/** How a batch ended. A batch stopped with nothing left to start counts as not stopped. */
export function batchStatus(
  reason: CloseReason,
  { total, completed, failed }: Pick<BatchFigures, "total" | "completed" | "failed">,
): ClosedBatch["status"] {
  if (reason === "cancelled") return "cancelled";
  if (reason !== "done" && completed + failed < total) return "stopped";
  return completed === total ? "completed" : "failed";
}

/** Such as `31/50 completed, 2 failed, 1 waits`. */
export function batchLine({ total, completed, failed, waits }: BatchFigures): string {
  return [
    `${completed}/${total} completed`,
    ...(failed > 0 ? [`${failed} failed`] : []),
    ...(waits > 0 ? [`${waits} ${waits === 1 ? "waits" : "wait"}`] : []),
  ].join(", ");
}
