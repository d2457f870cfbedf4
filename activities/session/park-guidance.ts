/**
 * Messages that are too many for the workflow to carry, or that its run will not read, wait in Postgres, in order. A run
 * that never opened its session keeps them too. A run whose session another run has claimed writes nothing: its messages are
 * read from its history.
 *
 * Idempotency key: (session, client id). Side effects: rows. Retry class: Postgres. Cancel: none needed, it is short.
 */
import { inScope } from "../runtime/activity-scope.ts";
import { cleanDeep } from "../redaction/clean-deep.ts";
import type { Guidance } from "../contract/guidance.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import { superseded } from "../contract/failures.ts";
import { parkGuidance } from "../store/guidance.ts";
import { lockUnlessSuperseded } from "../store/runs.ts";

export function createParkGuidance(deps: AgentDeps) {
  return ({ items }: { items: readonly Guidance[] }): Promise<void> =>
    inScope(deps, ({ sessionId, runId }) =>
      deps.store.db.transaction(async (tx) => {
        if (!(await lockUnlessSuperseded(tx, sessionId, runId)))
          throw superseded("the messages wait for that one");
        await parkGuidance(tx, sessionId, cleanDeep(items, deps.sanitizer.clean) as Guidance[]);
      }),
    );
}
