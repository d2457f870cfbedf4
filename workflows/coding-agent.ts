/** The agent loop. What it decides is in loop-policy.ts, what it holds in agent-state.ts and run.ts. */
import { CancellationScope, workflowInfo } from "@temporalio/workflow";
import type { ClosedSession } from "../activities/contract/activities.ts";
import { runTools } from "./calls.ts";
import {
  close,
  notStarted,
  storeEnd,
  openRun,
  continueIfMoving,
  continueSession,
  continueWithWaiting,
  isNewRunDue,
} from "./lifecycle.ts";
import { pushSaves } from "./delivery.ts";
import { settleLater, waitsForAnswers } from "./later-questions.ts";
import { setHandlers } from "./handlers.ts";
import { limitToAsk, mayGoOn, mayGoOnOverBudget, untilLimitEnds } from "./limits.ts";
import { afterStep, applyMove, limitReached, returnIfDue, stepIn } from "./loop-policy.ts";
import { makeRoom, pruneOld, undoCompactions } from "./make-room.ts";
import { askNextStep } from "./model-step.ts";
import { tellsOfCommands } from "./sandbox.ts";
import { failed, closingError, toOutcome, type Outcome } from "./outcome.ts";
import { announceStop, createRun, hasMessages, type Run } from "./run.ts";
import type { CodingAgentInput } from "./run-input.ts";
import { seeBaseline, verifyWork, withVerified } from "./verify.ts";

/** One session of the agent. The workflow's id is the session's. */
export async function codingAgent(input: CodingAgentInput = {}): Promise<ClosedSession> {
  const run = createRun(input);
  setHandlers(run);
  CancellationScope.current().cancelRequested.catch(announceStop);
  const outcome = withVerified(run, await runSession(run, input).catch(toOutcome));
  run.status = outcome.status;
  if (outcome.error?.type === "NothingToStart") return notStarted(run, outcome.error.message);
  let closed = await CancellationScope.nonCancellable(() => close(run, outcome));
  for (;;) {
    if (!closed.error && outcome.status === "completed" && hasMessages(run)) await continueWithWaiting(run);
    if (!isOfAnother(closed)) break;
    closed = await CancellationScope.nonCancellable(() => storeEnd(run, outcome));
  }
  if (closed.error) throw closingError({ status: "failed", error: closed.error });
  // A run that only delivers has not failed just because the previous run had.
  if (outcome.error && outcome !== input.deliver?.outcome) throw closingError(outcome);
  const { storedFor: _run, ...result } = closed;
  return result;
}

/**
 * The run was reset to after all that it had to do. Another line may be in force since then, so this run has to claim the session,
 * which only an activity does.
 */
function isOfAnother({ storedFor }: ClosedSession): boolean {
  return storedFor !== undefined && storedFor !== workflowInfo().runId;
}

type Policy = NonNullable<Run["policy"]>;

async function runSession(run: Run, input: CodingAgentInput): Promise<Outcome> {
  const opened = await openRun(run, input);
  return "status" in opened ? opened : loop(run, opened);
}

async function loop(run: Run, first: Policy): Promise<Outcome> {
  const { state } = run;
  if (state.waitingCalls.length > 0) {
    const stuck = await finishStep(run, [...state.waitingCalls], first);
    if (stuck) return stuck;
  }
  await seeBaseline(run, first);
  for (;;) {
    // A model that was switched during the run has another budget.
    const policy = run.policy ?? first;
    if (state.deadline === "over") return { status: "max_steps", limit: "deadline" };
    if (isNewRunDue(run, policy)) await continueSession(run);

    const dueLimit = limitToAsk(run, policy);
    if (dueLimit !== undefined) {
      state.endsAtLimit = !(await mayGoOn(run, dueLimit, first));
      continue;
    }

    await settleLater(run);
    await undoCompactions(run);
    const waitMs = await makeRoom(run, policy);
    if (waitMs !== undefined) {
      const end = await untilLimitEnds(run, waitMs);
      if (end) return end;
      continue;
    }

    const limit = limitReached(state, policy);
    returnIfDue(state, policy, Date.now());
    const answer = await askNextStep(run, policy, limit);
    if (answer === undefined) continue;
    if (answer.kind === "limited") {
      const end = await untilLimitEnds(run, answer.waitMs);
      if (end) return end;
      continue;
    }
    if (answer.kind === "over-budget") {
      if (await mayGoOnOverBudget(run, answer)) continue;
      return { status: "max_steps", limit: "budget", limitReason: answer.reason };
    }
    if (answer.kind === "answered" && limit) {
      await verifyWork(run, policy, { isLast: true });
      return { status: "max_steps", limit };
    }
    if (answer.kind === "unavailable") stepIn(state, Date.now());
    const next = afterStep(state, answer, policy);
    applyMove(state, answer, next);
    if (next.kind === "completed") {
      if (
        (await waitsForAnswers(run, policy)) ||
        (await tellsOfCommands(run, policy)) ||
        (await verifyWork(run, policy))
      )
        continue;
      return { status: "completed" };
    }
    if (next.kind === "failed") return failed(next.type, next.message);
    if (next.kind !== "run tools") continue;

    const calls = next.calls.map((call, index) => ({ call, index }));
    const stuck = await finishStep(run, calls, policy);
    if (stuck) return stuck;
  }
}

/** Performs the calls of a step's answer, and what is due after them. */
async function finishStep(
  run: Run,
  calls: Parameters<typeof runTools>[1],
  policy: Policy,
): Promise<Outcome | undefined> {
  const isStuck = await runTools(run, calls).catch((error: unknown) => continueIfMoving(run, calls, error));
  if (isStuck) return failed("Stuck", STUCK_MESSAGE);
  await pushSaves(run);
  await pruneOld(run, policy);
  return undefined;
}

const STUCK_MESSAGE =
  "The same calls keep giving the same results, even after a warning. The conversation is kept: say what to do differently to resume.";
