/**
 * Says that a session waits for nothing but answers: every list of sessions shows it.
 *
 * Idempotency key: the session's status. Side effects: that. Heartbeat: by timer. Retry class: Postgres. Cancel: none needed.
 */
import { inScope } from "./runtime/activity-scope.ts";
import type { AgentDeps } from "./runtime/deps.ts";
import { enterSession } from "./runtime/enter-session.ts";
import { openQuestions, setWaiting } from "./store/questions.ts";
import { holdRun } from "./store/runs.ts";

export function createMarkWaiting(deps: AgentDeps) {
  return ({ step }: { readonly step: number }): Promise<void> =>
    inScope(deps, async (scope) => {
      const { id } = await enterSession(deps, scope, { step, phase: "tools" });
      await deps.store.db.transaction(async (tx) => {
        if (!(await holdRun(tx, id, scope.runId))) return;
        if ((await openQuestions(tx, id)).length > 0) await setWaiting(tx, id, true);
      });
      deps.notifier.wake(id);
    });
}
