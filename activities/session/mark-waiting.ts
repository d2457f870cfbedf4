/**
 * Marks a session as waiting for answers only, which every list of sessions shows.
 *
 * Idempotency key: the session's status. Side effects: that. Heartbeat: by timer. Retry class: Postgres. Cancel: none needed.
 */
import type { OpenBudget } from "../contract/limits.ts";
import { inScope, type ActivityScope } from "../runtime/activity-scope.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import { enterSession } from "../runtime/enter-session.ts";
import { openQuestions, setWaiting } from "../store/questions.ts";
import { lockRunAlone } from "../store/session-locks.ts";
import type { Session } from "../store/sessions.ts";
import { openBudget } from "../step/budget.ts";

export function createMarkWaiting(deps: AgentDeps) {
  return (input: Waiting): Promise<void> =>
    inScope(deps, async (scope) => void (await enterWaiting(deps, scope, input)));
}

interface Waiting {
  readonly step: number;
  /** A question about a limit is open: the session waits before the step that exceeds the limit. */
  readonly budget?: OpenBudget;
}

/**
 * As `enterSession`. Afterwards lists show the session as waiting, and its question about a limit is open: also if the run was
 * reset and this is its first activity.
 */
export async function enterWaiting(
  deps: AgentDeps,
  scope: ActivityScope,
  { step, budget }: Waiting,
): Promise<Session> {
  const session = await enterSession(
    deps,
    scope,
    budget === undefined
      ? { step, phase: "tools" }
      : { step: budget.step, phase: "model", round: budget.round },
  );
  const { id } = session;
  await deps.store.db.transaction(async (tx) => {
    if (!(await lockRunAlone(tx, id, scope.runId))) return;
    if (budget !== undefined) await openBudget(tx, session, budget);
    if ((await openQuestions(tx, id)).length > 0) await setWaiting(tx, id, true);
  });
  deps.notifier.wake(id);
  return session;
}
