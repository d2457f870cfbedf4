/**
 * Writes how a question about a limit ended. A higher cost limit applies to the whole session, with its
 * delegates and later runs; a higher step limit applies to the run.
 *
 * Idempotency key: the question's row, which ends once; the new limit follows from the input. Side effects: rows, an event.
 * Heartbeat: by timer. Retry class: Postgres. Cancel: none needed, it is short.
 */
import { inScope, type ActivityScope } from "../runtime/activity-scope.ts";
import { cleanDeep } from "../redaction/clean-deep.ts";
import { moreOf, raisedLimit } from "../contract/limits.ts";
import { superseded } from "../contract/failures.ts";
import type { SettleBudgetInput, Settlement } from "../contract/questions.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import { enterSession } from "../runtime/enter-session.ts";
import { openBudget, roomFor } from "../step/budget.ts";
import { closingOf, settledEvent } from "./settlement.ts";
import { appendEvents } from "../store/events.ts";
import { closeQuestion, setWaiting } from "../store/questions.ts";
import { lockRunAlone } from "../store/session-locks.ts";
import { setMaxCost } from "../store/session-settings.ts";

export function createSettleBudget(deps: AgentDeps) {
  return (input: SettleBudgetInput): Promise<{ readonly of?: number }> =>
    inScope(deps, (scope) => settleBudget(deps, scope, input));
}

async function settleBudget(
  deps: AgentDeps,
  scope: ActivityScope,
  input: SettleBudgetInput,
): Promise<{ readonly of?: number }> {
  const { step, round, limit, id } = input;
  const session = await enterSession(deps, scope, { step, phase: "model", round });
  const settlement = cleanDeep(input.settlement, deps.sanitizer.clean) as Settlement;
  const asked = settlement.how === "answered" ? moreOf(limit, settlement.text) : undefined;
  // The operator's policy may have become stricter while the question was open.
  const amount = asked === undefined ? undefined : Math.min(asked, roomFor(deps.policy, input));
  const of = amount === undefined || amount <= 0 ? undefined : raisedLimit(input, amount);
  await deps.store.db.transaction(async (tx) => {
    if (!(await lockRunAlone(tx, session.id, scope.runId))) throw superseded("the answer was dropped");
    const question = (await openBudget(tx, session, input))?.row;
    const key = { sessionId: session.id, epoch: session.epoch, id };
    if (question !== undefined && (await closeQuestion(tx, key, closingOf(question, settlement))))
      await appendEvents(tx, session.id, session.epoch, [
        { ...settledEvent(question, settlement), step: question.step, attempt: scope.attempt },
      ]);
    if (of !== undefined && limit === "cost") await setMaxCost(tx, session.id, of);
    await setWaiting(tx, session.id, false);
  });
  deps.notifier.wake(session.id);
  return of === undefined ? {} : { of };
}
