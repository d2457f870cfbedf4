/** Asks people at a limit whether the session may continue: a question like any other, but one that belongs to no call. */
import type { BudgetLimit } from "../activities/contract/limits.ts";
import type { RunPolicy } from "../activities/contract/run-policy.ts";
import { lasted, type OpenQuestion } from "./asking.ts";
import { limitReached } from "./loop-policy.ts";
import { perform } from "./proxies.ts";
import { answerTo, ASK_AGAIN, restingDuring } from "./questions.ts";
import { optionsOf, showDetails, type Run } from "./actions.ts";

/** The limit that a person must be asked about now, if any. */
export function limitToAsk(run: Run, policy: RunPolicy): BudgetLimit | undefined {
  const { state } = run;
  const asks = policy.asksAtLimit === true && !state.endsAtLimit;
  const limit = asks ? limitReached(state, policy) : undefined;
  return limit === "deadline" ? undefined : limit;
}

/**
 * Asks whether the run may continue, and waits for the answer.
 * @param first the run's policy at its start: the question offers the same amount again
 * @returns false if it must end at the limit
 */
export async function mayGoOn(run: Run, limit: BudgetLimit, first: RunPolicy): Promise<boolean> {
  const { state, asking } = run;
  const step = state.step + 1;
  const isCost = limit === "cost";
  const policy = run.policy ?? first;
  const input = {
    step,
    round: state.round,
    limit,
    used: isCost ? state.costUsd : state.steps,
    of: isCost ? (policy.maxCostUsd ?? 0) : policy.maxSteps + state.moreSteps,
    offer: isCost ? (first.maxCostUsd ?? 0) : first.maxSteps,
  };
  asking.storing += 1;
  const asks = `step ${step} · asks for more ${isCost ? "money" : "steps"}`;
  const asked = await perform("askBudget", optionsOf(run), asks, input).finally(() => (asking.storing -= 1));
  if (asked.kind === "passed") return false;
  if (asked.kind === "raised") return raise(run, limit, asked.of);
  const { question, used, of } = asked;
  const budget = { ...input, used, of, id: question.id };
  const open: OpenQuestion = { ...question, budget, askedAtMs: Date.now(), settlement: undefined };
  asking.busy = 1;
  const settlement = await restingDuring(run, () => answerTo(run, open));
  if (settlement === ASK_AGAIN) return mayGoOn(run, limit, first);
  const summary = `step ${step} · ${settlement.how} after ${lasted(Date.now() - open.askedAtMs)}`;
  const settled = await perform("settleBudget", optionsOf(run), summary, { ...budget, settlement });
  return settled.of === undefined ? false : raise(run, limit, settled.of);
}

/** A raised cost limit belongs to the session and is in its row; raised steps belong to this run and are carried. */
function raise(run: Run, limit: BudgetLimit, of: number): true {
  const { state, policy } = run;
  if (limit === "steps") state.moreSteps = of - (policy?.maxSteps ?? 0);
  else if (policy) run.policy = { ...policy, maxCostUsd: of };
  showDetails(run);
  return true;
}
