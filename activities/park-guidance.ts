/**
 * Messages that are too many for the workflow to carry wait in Postgres, in order.
 *
 * Idempotency key: (session, client id). Side effects: rows. Retry class: Postgres. Cancel: none needed, it is short.
 */
import { inScope } from "./activity-scope.ts";
import { cleanDeep } from "./context/clean-deep.ts";
import type { Guidance } from "./contract.ts";
import type { AgentDeps } from "./deps.ts";
import { parkGuidance } from "./store/guidance.ts";

export function createParkGuidance(deps: AgentDeps) {
  return ({ items }: { items: readonly Guidance[] }): Promise<void> =>
    inScope(deps, (scope) =>
      parkGuidance(deps.store.db, scope.sessionId, cleanDeep(items, deps.border.clean) as Guidance[]),
    );
}
