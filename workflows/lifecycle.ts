/** How a run begins, ends, and continues in a fresh history. */
import { workflowInfo, CancellationScope, CancelledFailure, continueAsNew } from "@temporalio/workflow";
import type { ClosedSession, NeverOpened } from "../activities/contract/activities.ts";
import { deliver, fetchRepository, refreshCheckout, tellFollower } from "./delivery.ts";
import { markStored, nextToStore, waiting } from "./inbox.ts";
import { notifyEnd } from "./questions.ts";
import { messageOf, type Outcome } from "./outcome.ts";
import { perform, openSession } from "./proxies.ts";
import { enterPhase, optionsOf, setSearchAttributes, storeArrived, type Run } from "./run.ts";
import { type RunPolicy, givenPrecedence } from "../activities/contract/run-policy.ts";
import { applyOpened, carry } from "./agent-state.ts";
import { watchDeadline } from "./limits.ts";
import type { CodingAgentInput, CodingAgent } from "./run-input.ts";
import { setUpSandbox, performOnHost } from "./sandbox.ts";
import { carryWaiting, MovesOn, type WaitingCall } from "./asking.ts";
import { continueDue } from "./loop-policy.ts";
import { hasNewVersion, moveOn, ownVersion } from "./versions.ts";

/** @returns the run's policy, or its outcome if there is nothing to do for the loop */
export async function openRun(run: Run, input: CodingAgentInput): Promise<RunPolicy | Outcome> {
  const { task, schedule, carried, deliver } = input;
  // With a task, they wait: both may be as large as an activity's input may be.
  const arrived = task === undefined ? nextToStore(run.state.inbox) : [];
  const { firstExecutionRunId: chain, continuedFromExecutionRunId: continuedFrom, priority } = workflowInfo();
  const session = await openSession({
    task,
    schedule,
    chain,
    continuedStep: carried?.step,
    continuedRound: carried?.compaction?.round,
    keepsCalls: carried?.waitingCalls && (true as const),
    continuedFrom,
    arrived: arrived.length === 0 ? undefined : arrived,
    precedence: givenPrecedence(priority),
  });
  markStored(run.state.inbox, arrived, session.over);
  const { policy } = session;
  applyOpened(run.state, session);
  run.opened = true;
  run.policy = policy;
  if (policy.searchAttributes) setSearchAttributes(run, "active");
  // A failure is met again at the next boundary.
  storeArrived(run).catch(() => undefined);
  if (session.isDone && waiting(run.state.inbox) === 0) return { status: "completed" };
  await fetchRepository(run);
  if (deliver) return deliver.outcome;
  if (session.isSpent) return { status: "max_steps", limit: "cost" };
  watchDeadline(run, policy);
  await setUpSandbox(run);
  await refreshCheckout(run);
  return policy;
}

/** Saves, removes the container, writes the outcome. Nothing here may keep the run from ending. */
export async function close(run: Run, outcome: Outcome): Promise<ClosedSession> {
  enterPhase(run, "closing");
  await run.opening;
  await storeArrived(run);
  const notDelivered = await deliver(run, outcome);
  const notClosed = await closeSandbox(run, outcome);
  await run.delegates.closed();
  const closed = await closeSession(run, outcome, { notClosed, notDelivered });
  await tellFollower(run);
  // Messages that arrived meanwhile.
  await storeArrived(run);
  if (outcome.status !== "completed" || waiting(run.state.inbox) === 0) await notifyEnd(run);
  // Messages that arrived while the notice was sent: nothing is awaited between the last look and the run's end.
  await storeArrived(run);
  enterPhase(run, "ended");
  if (run.policy?.searchAttributes) setSearchAttributes(run, closed.status);
  return closed;
}

/** Writes the outcome again, for a run that was reset to after it was written. */
export async function storeEnd(run: Run, outcome: Outcome): Promise<ClosedSession> {
  const closed = await closeSession(run, outcome, {});
  await storeArrived(run);
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
  const { status, limit, limitReason, error, verified } = outcome;
  return perform("closeSession", optionsOf(run), `close · ${status}`, {
    step: run.state.step,
    ...neverOpened(run),
    status,
    limit: limit === undefined || limit === "steps" ? undefined : limit,
    limitReason,
    error,
    notClosed,
    notDelivered,
    verified: verified?.outcome,
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
    limit: limit === undefined || limit === "steps" ? undefined : limit,
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
async function closeSandbox(run: Run, { status }: Outcome): Promise<string | undefined> {
  try {
    const mayPark = run.policy?.parksAtEnd === true && (status === "completed" || status === "max_steps");
    const input = {
      step: run.state.step,
      mayPark: mayPark ? (true as const) : undefined,
      ...neverOpened(run),
    };
    const how = mayPark ? "stop" : "remove";
    await perform("closeSandbox", optionsOf(run), `save the workspace, ${how} the container`, input);
    return undefined;
  } catch (failure) {
    return messageOf(failure);
  }
}

/** Whether a new run of the same session is due, for the length of the history or a new version of the workers. */
export function isNewRunDue({ state }: Run, policy: RunPolicy): boolean {
  const { continueAsNewSuggested: suggested, historyLength: events } = workflowInfo();
  return continueDue({ suggested, events }, policy) || hasNewVersion(state.leftVersion);
}

/** @param calls of a step that only waits for people; their questions stay open */
export async function continueSession(run: Run, calls: readonly WaitingCall[] = []): Promise<never> {
  await saveAll(run);
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
  await CancellationScope.nonCancellable(() => storeArrived(run));
  endIfCancelled();
  await continueAsNew<CodingAgent>({ carried: { ...carry(run.state), steps: 0, moreSteps: 0 } });
}

/**
 * A cancel that arrived while the run closed would not reach the new run. The stored outcome stays, and the
 * messages wait for the session's next run.
 */
function endIfCancelled(): void {
  if (CancellationScope.current().consideredCancelled) throw new CancelledFailure("Cancelled");
}

/** Before the session continues in a fresh history: nothing is pending, and its files are saved. */
async function saveAll(run: Run): Promise<void> {
  await run.opening;
  const { step } = run.state;
  const summary = `save the workspace of step ${step}`;
  await performOnHost(run, "saveWorkspace", summary, { step });
  await storeArrived(run);
}
