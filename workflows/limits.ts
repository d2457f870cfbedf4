/** A run's limits: people are asked at one of steps or money, a model's is waited for, and a deadline ends the run in order. */
import type { Settlement } from "../activities/contract/questions.ts";
import type { AskBudgetInput, BudgetLimit, OverBudgetFacts } from "../activities/contract/limits.ts";
import type { RunPolicy } from "../activities/contract/run-policy.ts";
import { lasted, type OpenQuestion } from "./asking.ts";
import { limitReached } from "./loop-policy.ts";
import { perform } from "./proxies.ts";
import { answerTo, ASK_AGAIN, restingDuring } from "./questions.ts";
import { optionsOf, showDetails, type Run, interrupt, enterPhase, interruptible } from "./run.ts";
import { isCancellation, sleep, workflowInfo, condition } from "@temporalio/workflow";
import { waiting } from "./inbox.ts";
import { failed, type Outcome } from "./outcome.ts";
import { parkingDuring } from "./waits.ts";

/** The limit that a person must be asked about now, if any. */
export function limitToAsk(run: Run, policy: RunPolicy): BudgetLimit | undefined {
  const { state } = run;
  const asks = policy.asks.atLimit === true && !state.endsAtLimit;
  const limit = asks ? limitReached(state, policy) : undefined;
  return limit === "deadline" ? undefined : limit;
}

/**
 * Asks whether the run may continue, and waits for the answer.
 * @param first the run's policy at its start: the question offers the same amount again
 * @returns false if it must end at the limit
 */
export async function mayGoOn(run: Run, limit: BudgetLimit, first: RunPolicy): Promise<boolean> {
  const { state } = run;
  const step = state.step + 1;
  const isCost = limit === "cost";
  const policy = run.policy ?? first;
  const input = {
    step,
    round: state.compaction.round,
    limit,
    used: isCost ? state.costUsd : state.steps,
    of: isCost ? (policy.maxCostUsd ?? 0) : policy.maxSteps + state.moreSteps,
    offer: isCost ? (first.maxCostUsd ?? 0) : first.maxSteps,
  };
  const { of } = await askAt(run, input);
  return of === undefined ? false : raise(run, limit, of);
}

/**
 * A budget of the operator's has no room for the next request: asks whether the session may go on nevertheless, and waits for the
 * answer. A message lets it look again, and so does the day on which the budget begins anew.
 * @returns false if it must end
 */
export async function mayGoOnOverBudget(run: Run, { asks }: OverBudgetFacts): Promise<boolean> {
  const { state } = run;
  if (asks === undefined || state.deadline !== undefined) return false;
  const end = await askAt(run, { ...asks, step: state.step + 1, round: state.compaction.round });
  const isOver = end.settlement?.how === "defaulted";
  const isSaid = end.settlement?.how === "withdrawn" && end.settlement.why === "said";
  return end.of !== undefined || isOver || isSaid;
}

interface Asked {
  /** The limit from now on; undefined if it was not raised. */
  readonly of?: number | undefined;
  /** How the question ended; undefined if nobody was asked. */
  readonly settlement?: Settlement;
}

async function askAt(run: Run, input: AskBudgetInput): Promise<Asked> {
  const { asking } = run;
  const { step, limit } = input;
  asking.storing += 1;
  const asks = `step ${step} · asks for more ${limit === "steps" ? "steps" : "money"}`;
  const reply = await perform("askBudget", optionsOf(run), asks, input).finally(() => (asking.storing -= 1));
  if (reply.kind === "passed") return {};
  if (reply.kind === "raised") return { of: reply.of };
  const { question, used, of } = reply;
  const budget = { ...input, used, of, id: question.id };
  const open: OpenQuestion = { ...question, budget, askedAtMs: Date.now(), settlement: undefined };
  asking.busy = 1;
  const settlement = await restingDuring(run, () => answerTo(run, open));
  // What was reached is read anew.
  if (settlement === ASK_AGAIN) return askAt(run, input);
  const summary = `step ${step} · ${settlement.how} after ${lasted(Date.now() - open.askedAtMs)}`;
  const settled = await perform("settleBudget", optionsOf(run), summary, { ...budget, settlement });
  return { of: settled.of, settlement };
}

/** A raised cost limit belongs to the session and is in its row; raised steps belong to this run and are carried. */
function raise(run: Run, limit: BudgetLimit, of: number): true {
  const { state, policy } = run;
  if (limit === "steps") state.moreSteps = of - (policy?.maxSteps ?? 0);
  else if (policy) run.policy = { ...policy, maxCostUsd: of };
  showDetails(run);
  return true;
}

/** The largest share of the time that the wrap-up may take. Chosen by judgement: the work keeps three quarters. */
const MAX_WRAP_UP_SHARE = 1 / 4;

/** Starts the run's clock, if it has one. It continues in the runs that continue this one as new. */
export function watchDeadline(run: Run, { deadline }: RunPolicy): void {
  if (deadline === undefined) return;
  const { afterMs, wrapUpMs } = deadline;
  const { state } = run;
  state.deadlineAtMs ??= workflowInfo().runStartTime.getTime() + afterMs;
  const endMs = state.deadlineAtMs;
  const wrapUpAtMs = endMs - Math.min(wrapUpMs, afterMs * MAX_WRAP_UP_SHARE);
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

/** For all waits in a row. Chosen: the longest limits of subscriptions are weekly. */
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
  const { deadline, compaction } = state;
  const { request } = compaction;
  const isOver = () =>
    waiting(state.inbox) > 0 ||
    compaction.request !== request ||
    compaction.undoRequests.length > 0 ||
    state.interrupting ||
    state.deadline !== deadline;
  await parkingDuring(run, nowMs + ms, () => interruptible(run, () => condition(isOver, ms)));
  return undefined;
}
