/** The end of a run: what waits is kept, the sandbox closed, the outcome written. */
import { rootCause, workflowInfo } from "@temporalio/workflow";
import type { ClosedSession, NeverOpened } from "../activities/contract/activities.ts";
import { drain } from "./inbox.ts";
import type { Outcome } from "./outcome.ts";
import { perform } from "./proxies.ts";
import { enter, optionsOf, parkOverflow, tell, type Run } from "./actions.ts";

/** What this run will not read waits in Postgres for the next one. */
export async function keepWaiting(run: Run): Promise<void> {
  const { inbox } = run.state;
  await parkOverflow(run);
  while (inbox.queue.length > 0) {
    const items = drain(inbox).guidance;
    await perform("parkGuidance", optionsOf(run), "keep waiting messages", { items });
    await parkOverflow(run);
  }
}

/** Saves, removes the container, writes the outcome. Nothing here may keep the run from ending. */
export async function close(run: Run, outcome: Outcome): Promise<ClosedSession> {
  const { state } = run;
  enter(run, "closing");
  await run.opening;
  // A completed run takes up itself what waits.
  const keep = outcome.status === "completed" ? parkOverflow : keepWaiting;
  await keep(run);
  const notClosed = await closeSandbox(run);
  const { status, error } = outcome;
  const closed = await perform("closeSession", optionsOf(run), `close · ${status}`, {
    step: state.step,
    ...neverOpened(run),
    status,
    ...(error ? { error } : {}),
    ...(notClosed === undefined ? {} : { notClosed }),
  });
  // What was said while it was being closed.
  await keep(run);
  enter(run, "ended");
  if (run.policy?.searchAttributes) tell(run, status);
  return closed;
}

/** Activities of a run that knows nothing of its session must not take it for one that was reset to the first step. */
function neverOpened({ opened }: Run): { neverOpened?: NeverOpened } {
  if (opened) return {};
  const { continuedFromExecutionRunId: continuedFrom } = workflowInfo();
  return { neverOpened: continuedFrom === undefined ? {} : { continuedFrom } };
}

/** @returns why it was not done, which the session is told: that keeps no run from ending */
async function closeSandbox(run: Run): Promise<string | undefined> {
  try {
    const input = { step: run.state.step, ...neverOpened(run) };
    await perform("closeSandbox", optionsOf(run), "save the workspace, remove the container", input);
    return undefined;
  } catch (failure) {
    return rootCause(failure) ?? String(failure);
  }
}
