/** When a batch starts more sessions, when it stops, and how it ended. Pure. */
import type { BatchFigures, BatchLook, CloseReason, ClosedBatch, EndedItem } from "./batch.ts";

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
