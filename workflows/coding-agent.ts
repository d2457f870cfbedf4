/** The agent loop. Decisions are in loop-policy.ts, state in agent-state.ts, activities in actions.ts. */
import { CancellationScope, CancelledFailure, continueAsNew, workflowInfo } from "@temporalio/workflow";
import type { BudgetLimit } from "../activities/contract/limits.ts";
import type { ClosedSession } from "../activities/contract/activities.ts";
import { applyOpened, applyStep, carry, createState } from "./agent-state.ts";
import { close, keepWaiting, notStarted, storeEnd } from "./closing.ts";
import { watchDeadline } from "./deadline.ts";
import { fetchRepository, pushSaves } from "./delivery.ts";
import { runTools } from "./calls.ts";
import { setHandlers } from "./handlers.ts";
import { waiting } from "./inbox.ts";
import { limitToAsk, mayGoOn } from "./limits.ts";
import { untilLimitEnds } from "./model-limit.ts";
import { setUpSandbox } from "./set-up.ts";
import { announceStop } from "./stops.ts";
import { returnIfDue, stepIn } from "./fallback.ts";
import { afterStep, applyMove, continueDue, limitReached } from "./loop-policy.ts";
import { carryWaiting, MovesOn, type WaitingCall } from "./asking.ts";
import { givenPrecedence, type RunPolicy } from "../activities/contract/run-policy.ts";
import { makeRoom, pruneOld, undoCompactions } from "./make-room.ts";
import type { CodingAgentInput } from "./messages.ts";
import { failed, failureOf, outcomeOf, type Outcome } from "./outcome.ts";
import { openSession } from "./proxies.ts";
import { hasNewVersion, moveOn, ownVersion } from "./versions.ts";
import {
  applyPolicy,
  askModel,
  createRun,
  interrupted,
  parkOverflow,
  saveAndPark,
  setSearchAttributes,
  showDetails,
  type Run,
} from "./actions.ts";

/** One session of the agent. The workflow's id is the session's. */
export async function codingAgent(input: CodingAgentInput = {}): Promise<ClosedSession> {
  const run = createRun(createState(input), input.deliver?.order);
  setHandlers(run);
  CancellationScope.current().cancelRequested.catch(announceStop);
  const outcome = await runSession(run, input).catch(outcomeOf);
  run.status = outcome.status;
  if (outcome.error?.type === "NothingToStart") return notStarted(run, outcome.error.message);
  let closed = await CancellationScope.nonCancellable(() => close(run, outcome));
  for (;;) {
    if (closed.error) await CancellationScope.nonCancellable(() => keepWaiting(run));
    else if (outcome.status === "completed" && waiting(run.state.inbox) > 0) await continueWithWaiting(run);
    if (!isOfAnother(closed)) break;
    closed = await CancellationScope.nonCancellable(() => storeEnd(run, outcome));
  }
  if (closed.error) throw failureOf({ status: "failed", error: closed.error });
  // A run that only delivers has not failed just because the previous run had.
  if (outcome.error && outcome !== input.deliver?.outcome) throw failureOf(outcome);
  const { storedFor: _run, ...result } = closed;
  return result;
}

/** A message arrived while the session was closing: continue with it, unless the run was cancelled as well. */
async function continueWithWaiting(run: Run): Promise<void> {
  await CancellationScope.nonCancellable(() => parkOverflow(run));
  await endIfCancelled(run);
  await continueAsNew<typeof codingAgent>({ carried: { ...carry(run.state), steps: 0, moreSteps: 0 } });
}

/**
 * The run was reset to after all that it had to do. Another line may be in force since then, so this run has to claim the session,
 * which only an activity does.
 */
function isOfAnother({ storedFor }: ClosedSession): boolean {
  return storedFor !== undefined && storedFor !== workflowInfo().runId;
}

async function runSession(run: Run, input: CodingAgentInput): Promise<Outcome> {
  const { firstExecutionRunId: chain, continuedFromExecutionRunId: continuedFrom, priority } = workflowInfo();
  const precedence = givenPrecedence(priority);
  const session = await openSession({
    ...(input.task === undefined ? {} : { task: input.task }),
    ...(input.schedule === undefined ? {} : { schedule: input.schedule }),
    chain,
    ...(input.carried ? { continuedStep: input.carried.step, continuedRound: input.carried.round } : {}),
    ...(input.carried?.waitingCalls ? { keepsCalls: true as const } : {}),
    ...(continuedFrom === undefined ? {} : { continuedFrom }),
    ...(precedence === undefined ? {} : { precedence }),
  });
  applyOpened(run.state, session);
  run.opened = true;
  run.policy = session.policy;
  if (session.policy.searchAttributes) setSearchAttributes(run, "active");
  if (session.isDone && waiting(run.state.inbox) === 0) return { status: "completed" };
  await fetchRepository(run);
  if (input.deliver) return input.deliver.outcome;
  if (session.isSpent) return { status: "max_steps", limit: "cost" };
  watchDeadline(run, session.policy);
  await setUpSandbox(run);
  return loop(run, session.policy);
}

async function loop(run: Run, first: NonNullable<Run["policy"]>): Promise<Outcome> {
  const { state } = run;
  if (state.waitingCalls.length > 0) {
    const stuck = await finishStep(run, [...state.waitingCalls], first);
    if (stuck) return stuck;
  }
  for (;;) {
    // A model that was switched during the run has another budget.
    const policy = run.policy ?? first;
    if (state.deadline === "over") return { status: "max_steps", limit: "deadline" };
    if (continueDue(history(), policy) || hasNewVersion(state.leftVersion)) await continueSession(run);

    const asked: BudgetLimit | undefined = limitToAsk(run, policy);
    if (asked !== undefined) {
      state.endsAtLimit = !(await mayGoOn(run, asked, first));
      continue;
    }

    await undoCompactions(run);
    const waitMs = await makeRoom(run, policy);
    if (waitMs !== undefined) {
      const end = await untilLimitEnds(run, waitMs);
      if (end) return end;
      continue;
    }

    const limit = limitReached(state, policy);
    returnIfDue(state, policy, Date.now());
    const answer = await askModel(run, { wrapUp: limit });
    if (interrupted(run, answer)) continue;
    applyStep(state, answer);
    applyPolicy(run, policy, answer);
    showDetails(run);

    if (answer.kind === "limited") {
      const end = await untilLimitEnds(run, answer.waitMs);
      if (end) return end;
      continue;
    }
    if (answer.kind === "answered" && limit) return { status: "max_steps", limit };
    if (answer.kind === "unavailable") stepIn(state, Date.now());
    const next = afterStep(state, answer, policy);
    applyMove(state, answer, next);
    if (next.kind === "completed") return { status: "completed" };
    if (next.kind === "failed") return failed(next.type, next.message);
    if (next.kind !== "run tools") continue;

    const stuck = await finishStep(
      run,
      next.calls.map((call, index) => ({ call, index })),
      policy,
    );
    if (stuck) return stuck;
  }
}

/** Performs the calls of a step's answer, and what is due after them. */
async function finishStep(run: Run, calls: WaitingCall[], policy: RunPolicy): Promise<Outcome | undefined> {
  try {
    if (await runTools(run, calls)) return failed("Stuck", STUCK_MESSAGE);
  } catch (error) {
    if (!(error instanceof MovesOn)) throw error;
    await continueSession(run, calls);
  }
  await pushSaves(run);
  await pruneOld(run, policy);
  return undefined;
}

const STUCK_MESSAGE =
  "The same calls keep giving the same results, even after a warning. The conversation is kept: say what to do differently to resume.";

/**
 * A cancel that arrived while the run closed would not reach the new run. The stored outcome stays, and the
 * messages wait for the session's next run.
 */
async function endIfCancelled(run: Run): Promise<void> {
  if (!CancellationScope.current().consideredCancelled) return;
  await CancellationScope.nonCancellable(() => keepWaiting(run));
  throw new CancelledFailure("Cancelled");
}

function history() {
  const { continueAsNewSuggested, historyLength } = workflowInfo();
  return { suggested: continueAsNewSuggested, events: historyLength };
}

/**
 * Continues the session in a fresh history: at a step boundary, with nothing pending.
 * @param calls of a step that only waits for people; their questions stay open
 */
async function continueSession(run: Run, calls: readonly WaitingCall[] = []): Promise<never> {
  await saveAndPark(run);
  if (CancellationScope.current().consideredCancelled) throw new CancelledFailure("Cancelled");
  const carried = { ...carry(run.state), ...carryWaiting(run.asking, calls, run.state.interrupting) };
  if (!hasNewVersion(run.state.leftVersion)) return continueAsNew<typeof codingAgent>({ carried });
  const leftVersion = ownVersion();
  return moveOn<typeof codingAgent>({ carried: { ...carried, ...(leftVersion ? { leftVersion } : {}) } });
}
