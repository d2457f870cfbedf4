/** The question whether a session may exceed a limit. */
import { inScope, type ActivityScope } from "../runtime/activity-scope.ts";
import { type AskBudgetInput, parseGrantedAmount, raisedLimit } from "../contract/limits.ts";
import { superseded } from "../contract/failures.ts";
import type { AskedBudget, SettleBudgetInput, Settlement } from "../contract/questions.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import { enterSession } from "../runtime/enter-session.ts";
import { toAnswerers, budgetAsked, openBudget, mayBeAdded } from "../step/budget.ts";
import { appendEvents } from "../store/events.ts";
import { allowMoney } from "../store/budgets.ts";
import { spentUsd } from "../store/model-calls.ts";
import { questionsBefore, closeQuestion, setWaiting, timeLeftMs } from "../store/questions.ts";
import { lockRunAlone } from "../store/session-locks.ts";
import { cleanDeep } from "../text/clean.ts";
import { toClosing, settledEvent } from "./settlement.ts";
import { setMaxCost } from "../store/session-settings.ts";

/**
 * Asks a person whether a session may exceed a limit. The workflow waits for the answer.
 *
 * Idempotency key: (session, epoch, the step that waits, the limit) as long as the question is open. Side effects: the
 * question's row, an event. Heartbeat: by timer. Retry class: Postgres. Cancel: none needed, it is short.
 */
export function createAskBudget(deps: AgentDeps) {
  return (input: AskBudgetInput): Promise<AskedBudget> =>
    inScope(deps, (scope) => askBudget(deps, scope, input));
}

async function askBudget(deps: AgentDeps, scope: ActivityScope, input: AskBudgetInput): Promise<AskedBudget> {
  const { step, round, limit } = input;
  const { db } = deps.store;
  const session = await enterSession(deps, scope, { step, phase: "model", round });
  const isCost = limit === "cost";
  const isBudget = limit === "budget";
  const used = isCost ? await spentUsd(db, session.id) : input.used;
  const of = isCost ? (session.config.limits.maxCostUsd ?? input.of) : input.of;
  // Never for a limit that the run already has: the question would return at once.
  if (!isBudget && used < of && of > input.of) return { kind: "raised", of };
  const reached = { ...input, used, of };
  const most = mayBeAdded(deps.policy, reached);
  const opened = await db.transaction(async (tx) => {
    if (!(await lockRunAlone(tx, session.id, scope.runId))) throw superseded("the question was not asked");
    // An earlier run may have asked here, and ended without an answer: that question stays as it ended.
    const before = await questionsBefore(tx, {
      sessionId: session.id,
      // What was allowed outlives a reset, so that its question's id must not come again.
      epoch: isBudget ? undefined : session.epoch,
      step,
      name: limit,
    });
    const id = `s${step}${limit}${before === 0 ? "" : before + 1}`;
    const opened = await openBudget(tx, session, { ...reached, id }, most);
    if (opened?.isNew === true)
      await appendEvents(tx, session.id, session.epoch, [budgetAsked(opened.row, scope.attempt)]);
    return opened;
  });
  if (opened === undefined) return { kind: "passed" };
  const { row, options } = opened;
  const bound = most === Infinity ? {} : { most };
  const asks = isBudget
    ? { answerers: toAnswerers(deps.policy ?? {}, session.owner), expiresInMs: await timeLeftMs(db, row) }
    : {};
  return {
    kind: "asked",
    question: { id: row.id, kind: "budget", text: row.text, options, ...bound, ...asks },
    used,
    of,
  };
}

/**
 * Writes how a question about a limit ended. A higher cost limit applies to the whole session, with its
 * delegates and later runs; a higher step limit applies to the run; money beyond a budget is the session's in that budget's period.
 *
 * Idempotency key: the question's row, which ends once; the new limit follows from the input. Side effects: rows, an event.
 * Heartbeat: by timer. Retry class: Postgres. Cancel: none needed, it is short.
 */
export function createSettleBudget(deps: AgentDeps) {
  return (input: SettleBudgetInput): Promise<{ readonly of?: number }> =>
    inScope(deps, (scope) => settleBudget(deps, scope, input));
}

async function settleBudget(
  deps: AgentDeps,
  scope: ActivityScope,
  input: SettleBudgetInput,
): Promise<{ readonly of?: number }> {
  const { step, round, limit, id, budget } = input;
  const session = await enterSession(deps, scope, { step, phase: "model", round });
  const settlement = cleanDeep(input.settlement, deps.sanitizer.clean) as Settlement;
  const askedAmount = settlement.how === "answered" ? parseGrantedAmount(limit, settlement.text) : undefined;
  // The operator's policy may have become stricter while the question was open.
  const amount =
    askedAmount === undefined ? undefined : Math.min(askedAmount, mayBeAdded(deps.policy, input));
  const of = amount === undefined || amount <= 0 ? undefined : raisedLimit(input, amount);
  await deps.store.db.transaction(async (tx) => {
    if (!(await lockRunAlone(tx, session.id, scope.runId))) throw superseded("the answer was dropped");
    const question = (await openBudget(tx, session, input))?.row;
    const key = { sessionId: session.id, epoch: session.epoch, id };
    if (question !== undefined && (await closeQuestion(tx, key, toClosing(question, settlement))))
      await appendEvents(tx, session.id, session.epoch, [
        { ...settledEvent(question, settlement), step: question.step, attempt: scope.attempt },
      ]);
    if (of !== undefined && limit === "cost") await setMaxCost(tx, session.id, of);
    if (amount !== undefined && amount > 0 && budget !== undefined)
      await allowMoney(tx, { sessionId: session.id, question: id, scope: budget.window, usd: amount });
    await setWaiting(tx, session.id, false);
  });
  return of === undefined ? {} : { of };
}
