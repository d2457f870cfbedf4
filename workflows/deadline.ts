/** A run's deadline: the step in flight is interrupted some time before it, so that the run ends in order. */
import { isCancellation, sleep, workflowInfo } from "@temporalio/workflow";
import type { RunPolicy } from "../activities/contract/run-policy.ts";
import { interrupt, type Run } from "./actions.ts";

/** The largest share of the time that the wrap-up may take. Source: ours. */
const MAX_WRAP_UP_SHARE = 1 / 4;

/** Starts the run's clock, if it has one. It continues in the runs that continue this one as new. */
export function watchDeadline(run: Run, { deadlineMs, wrapUpMs = 0 }: RunPolicy): void {
  if (deadlineMs === undefined) return;
  const { state } = run;
  state.deadlineAtMs ??= workflowInfo().runStartTime.getTime() + deadlineMs;
  const endMs = state.deadlineAtMs;
  const wrapUpAtMs = endMs - Math.min(wrapUpMs, deadlineMs * MAX_WRAP_UP_SHARE);
  const watch = async () => {
    await sleep(Math.max(1, wrapUpAtMs - Date.now()));
    state.deadline = "near";
    interrupt(run);
    await sleep(Math.max(1, endMs - Date.now()));
    state.deadline = "over";
    interrupt(run);
  };
  // The timer ends with the run.
  watch().catch((error: unknown) => {
    if (!isCancellation(error)) throw error;
  });
}
