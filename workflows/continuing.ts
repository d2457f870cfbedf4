/** How a session continues in a fresh history: at a step boundary, with nothing pending. */
import {
  CancellationScope,
  CancelledFailure,
  condition,
  continueAsNew,
  workflowInfo,
} from "@temporalio/workflow";
import type { RunPolicy } from "../activities/contract/run-policy.ts";
import { carry } from "./agent-state.ts";
import { carryWaiting, MovesOn, type WaitingCall } from "./asking.ts";
import { keepWaiting } from "./closing.ts";
import { continueDue } from "./loop-policy.ts";
import type { CodingAgent } from "./run-input.ts";
import { parkOverflow, type Run } from "./run.ts";
import { performOnHost } from "./sandbox.ts";
import { hasNewVersion, moveOn, ownVersion } from "./versions.ts";

/** Whether a new run of the same session is due, for the length of the history or a new version of the workers. */
export function isNewRunDue({ state }: Run, policy: RunPolicy): boolean {
  const { continueAsNewSuggested: suggested, historyLength: events } = workflowInfo();
  return continueDue({ suggested, events }, policy) || hasNewVersion(state.leftVersion);
}

/** @param calls of a step that only waits for people; their questions stay open */
export async function continueSession(run: Run, calls: readonly WaitingCall[] = []): Promise<never> {
  await saveAndPark(run);
  if (CancellationScope.current().consideredCancelled) throw new CancelledFailure("Cancelled");
  const carried = { ...carry(run.state), ...carryWaiting(run.asking, calls, run.state.interrupting) };
  if (!hasNewVersion(run.state.leftVersion)) return continueAsNew<CodingAgent>({ carried });
  return moveOn<CodingAgent>({
    carried: { ...carried, leftVersion: ownVersion() ?? carried.leftVersion },
  });
}

/** Continues the session with the calls that wait for people, if `error` says that the run moves on. @throws any other error */
export function continueIfMoving(run: Run, calls: readonly WaitingCall[], error: unknown): Promise<never> {
  if (!(error instanceof MovesOn)) throw error;
  return continueSession(run, calls);
}

/** A message arrived while the session was closing: continue with it, unless the run was cancelled as well. */
export async function continueWithWaiting(run: Run): Promise<void> {
  await CancellationScope.nonCancellable(() => parkOverflow(run));
  await endIfCancelled(run);
  await continueAsNew<CodingAgent>({ carried: { ...carry(run.state), steps: 0, moreSteps: 0 } });
}

/**
 * A cancel that arrived while the run closed would not reach the new run. The stored outcome stays, and the
 * messages wait for the session's next run.
 */
async function endIfCancelled(run: Run): Promise<void> {
  if (!CancellationScope.current().consideredCancelled) return;
  await CancellationScope.nonCancellable(() => keepWaiting(run));
  throw new CancelledFailure("Cancelled");
}

/** Before the session continues in a fresh history: nothing is pending, and its files are saved. */
async function saveAndPark(run: Run): Promise<void> {
  await run.opening;
  const { step } = run.state;
  const summary = `save the workspace of step ${step}`;
  await performOnHost(run, "saveWorkspace", summary, { step });
  run.unannounced.isOver = true;
  await condition(() => !run.unannounced.isBusy);
  await parkOverflow(run);
}
