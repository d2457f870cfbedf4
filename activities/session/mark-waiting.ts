/**
 * Says that a session waits for nothing but answers: every list of sessions shows it.
 *
 * Idempotency key: the session's status. Side effects: that. Heartbeat: by timer. Retry class: Postgres. Cancel: none needed.
 */
import { inScope } from "../runtime/activity-scope.ts";
import type { OpenBudget } from "../contract/budget-question.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import { enterWaiting } from "./waiting.ts";

export function createMarkWaiting(deps: AgentDeps) {
  return (input: { readonly step: number; readonly budget?: OpenBudget }): Promise<void> =>
    inScope(deps, async (scope) => void (await enterWaiting(deps, scope, input)));
}
