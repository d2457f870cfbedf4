/** The end of a run: keeps waiting messages, closes the sandbox, writes the outcome. */
import { workflowInfo } from "@temporalio/workflow";
import type { ClosedSession, NeverOpened } from "../activities/contract/activities.ts";
import { deliver } from "./delivery.ts";
import { drain, waiting } from "./inbox.ts";
import { notifyEnd } from "./questions.ts";
import { messageOf, type Outcome } from "./outcome.ts";
import { perform } from "./proxies.ts";
import { enterPhase, optionsOf, parkOverflow, setSearchAttributes, type Run } from "./run.ts";

/** Parks the messages that this run will not read for the session's next run. */
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
  enterPhase(run, "closing");
  await run.opening;
  // A completed run continues with the waiting messages.
  const keep = outcome.status === "completed" ? parkOverflow : keepWaiting;
  await keep(run);
  const notDelivered = await deliver(run, outcome);
  const notClosed = await closeSandbox(run);
  await run.delegates.closed();
  const closed = await closeSession(run, outcome, { notClosed, notDelivered });
  // Messages that arrived meanwhile.
  await keep(run);
  if (outcome.status !== "completed" || waiting(run.state.inbox) === 0) await notifyEnd(run);
  // Messages that arrived while the notice was sent: nothing is awaited between the last look and the run's end.
  if (outcome.status !== "completed") await keepWaiting(run);
  enterPhase(run, "ended");
  if (run.policy?.searchAttributes) setSearchAttributes(run, closed.status);
  return closed;
}

/** Writes the outcome again, for a run that was reset to after it was written. */
export async function storeEnd(run: Run, outcome: Outcome): Promise<ClosedSession> {
  const closed = await closeSession(run, outcome, {});
  if (outcome.status !== "completed") await keepWaiting(run);
  return closed;
}

interface Undone {
  readonly notClosed?: string | undefined;
  readonly notDelivered?: string | undefined;
}

function closeSession(
  run: Run,
  outcome: Outcome,
  { notClosed, notDelivered }: Undone,
): Promise<ClosedSession> {
  const { status, limit, error } = outcome;
  return perform("closeSession", optionsOf(run), `close · ${status}`, {
    step: run.state.step,
    ...neverOpened(run),
    status,
    ...(limit === undefined || limit === "steps" ? {} : { limit }),
    ...(error ? { error } : {}),
    ...(notClosed === undefined ? {} : { notClosed }),
    ...(notDelivered === undefined ? {} : { notDelivered }),
  }).catch(() => notStored(run, outcome));
}

/** The end of a run that has no session: the person who started it reads in its result what to do. */
export function notStarted(run: Run, result: string): ClosedSession {
  enterPhase(run, "ended");
  return { ...notStored(run, { status: "failed" }), result };
}

/** The run ends as it would have: the reaper stores that end, from the run's result or failure. */
function notStored({ state }: Run, { status, limit }: Outcome): ClosedSession {
  const { step, compaction, usage } = state;
  return {
    status,
    ...(limit === undefined || limit === "steps" ? {} : { limit }),
    steps: step,
    rounds: compaction.round,
    result: "",
    usage,
  };
}

/** Marks a run that never opened its session, so that activities do not take it for a run that was reset to the first step. */
function neverOpened({ opened }: Run): { neverOpened?: NeverOpened } {
  if (opened) return {};
  const { continuedFromExecutionRunId: continuedFrom } = workflowInfo();
  return { neverOpened: continuedFrom === undefined ? {} : { continuedFrom } };
}

/** @returns why it failed, which is shown with the outcome: a failure here must not keep the run from ending */
async function closeSandbox(run: Run): Promise<string | undefined> {
  try {
    const input = { step: run.state.step, ...neverOpened(run) };
    await perform("closeSandbox", optionsOf(run), "save the workspace, remove the container", input);
    return undefined;
  } catch (failure) {
    return messageOf(failure);
  }
}
