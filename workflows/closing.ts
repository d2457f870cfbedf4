/** The end of a run: what waits is kept, the box closed, the outcome written. */
import { rootCause } from "@temporalio/workflow";
import type { ClosedSession } from "../activities/contract.ts";
import { drain } from "./inbox.ts";
import type { Outcome } from "./outcome.ts";
import { perform } from "./proxies.ts";
import { enter, optionsOf, parkOverflow, tell, type Run } from "./verbs.ts";

/** What nobody will read in this run waits in Postgres for the next one. A completed run takes it up again itself. */
async function keepWaiting(run: Run, outcome: Outcome): Promise<void> {
  const { inbox } = run.state;
  await parkOverflow(run);
  while (outcome.status !== "completed" && inbox.queue.length > 0) {
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
  await keepWaiting(run, outcome);
  const notClosed = await closeSandbox(run);
  const { status, error } = outcome;
  const closed = await perform("closeSession", optionsOf(run), `close · ${status}`, {
    step: state.step,
    status,
    ...(error ? { error } : {}),
    ...(notClosed === undefined ? {} : { notClosed }),
  });
  // What was said while it was being closed.
  await keepWaiting(run, outcome);
  enter(run, "ended");
  if (run.policy?.searchAttributes) tell(run, status);
  return closed;
}

/** @returns why it was not done, which the session is told: that keeps no run from ending */
async function closeSandbox(run: Run): Promise<string | undefined> {
  try {
    const input = { step: run.state.step };
    await perform("closeSandbox", optionsOf(run), "save the workspace, remove the container", input);
    return undefined;
  } catch (failure) {
    return rootCause(failure) ?? String(failure);
  }
}
