/** Waits for the end of a limit of the model: one timer, during which nothing is asked or paid. */
import { condition } from "@temporalio/workflow";
import { enterPhase, interruptible, type Run } from "./actions.ts";
import { waiting } from "./inbox.ts";
import { failed, type Outcome } from "./outcome.ts";

/** For all waits in a row. Source: ours; the longest limits of subscriptions are weekly. */
const MAX_WAIT_MS = 7 * 86_400_000;
/** Sessions that wait for the same moment do not all ask at once. */
const SPREAD_MS = 2_000;
/** If a limit was not over when its provider said so, the next wait is at least this long, doubled each time up to the largest. */
const FLOOR_MS = 1_000;
const LARGEST_FLOOR_MS = 600_000;

/**
 * Returns when the limit should be over, or as soon as a person says something, interrupts or asks for a compaction, or the deadline
 * comes near. @returns the run's end if that has come, or a week of waits did not help
 */
export async function untilLimitEnds(run: Run, waitMs: number): Promise<Outcome | undefined> {
  const { state } = run;
  // There is no time left to wait.
  if (state.deadline !== undefined) return { status: "max_steps", limit: "deadline" };
  const nowMs = Date.now();
  const { sinceMs = nowMs, count = 0 } = state.limits ?? {};
  const leftMs = sinceMs + MAX_WAIT_MS - nowMs;
  if (leftMs <= 0)
    return failed(
      "ModelUnavailable",
      "The model's limit has been used up for a week, whatever its provider said about its end. The conversation is kept: send a message to resume, or continue with another model (say ID --model).",
    );
  const floorMs = count === 0 ? 0 : Math.min(LARGEST_FLOOR_MS, FLOOR_MS * 2 ** Math.min(count, 20));
  const ms = Math.min(leftMs, Math.max(waitMs, floorMs) + Math.floor(Math.random() * SPREAD_MS));
  state.limits = { sinceMs, count: count + 1, untilMs: nowMs + ms };
  enterPhase(run, "waiting");
  const { deadline, compactRequest } = state;
  const isOver = () =>
    waiting(state.inbox) > 0 ||
    state.compactRequest !== compactRequest ||
    state.undoRequests.length > 0 ||
    state.interrupting ||
    state.deadline !== deadline;
  await interruptible(run, () => condition(isOver, ms));
  return undefined;
}
