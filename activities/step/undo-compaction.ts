/**
 * Undoes the newest compaction, between two steps.
 *
 * Idempotency key: the request's id, which the round's event keeps. Side effects: one transaction with marks and event.
 * Heartbeat: by timer. Retry class: Postgres. Cancel: nothing to undo.
 */
import { inScope, type ActivityScope } from "../runtime/activity-scope.ts";
import { contextSizeOf, measureOf } from "../context/context-size.ts";
import type { UndoCompactionInput, UndoneFacts } from "../contract/activities.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import { enterSession } from "../runtime/enter-session.ts";
import { superseded } from "../contract/failures.ts";
import { prefixOf } from "../context/request.ts";
import { loadView } from "../store/load-view.ts";
import { lockRun } from "../store/session-locks.ts";
import { undoAndAnnounce } from "../store/undo-compaction.ts";

export function createUndoCompaction(deps: AgentDeps) {
  return (input: UndoCompactionInput): Promise<UndoneFacts> =>
    inScope(deps, (scope) => undoCompaction(deps, scope, input));
}

async function undoCompaction(
  deps: AgentDeps,
  scope: ActivityScope,
  { step, requestId }: UndoCompactionInput,
): Promise<UndoneFacts> {
  const { db } = deps.store;
  const session = await enterSession(deps, scope, { step, phase: "model" });
  const undone = await db.transaction(async (tx) => {
    if (!(await lockRun(tx, session.id, scope.runId))) {
      throw superseded("no compaction was undone");
    }
    return undoAndAnnounce(tx, { id: session.id, epoch: session.epoch, step }, requestId);
  });
  deps.notifier.wake(session.id);
  const rows = await loadView(db, session.id);
  const prefix = prefixOf(session, deps.tools);
  const context = contextSizeOf(rows, measureOf(session, prefix));
  return undone === undefined
    ? { kind: "nothing", reason: "No compaction round is left to undo.", context }
    : { kind: "undone", round: undone.round, context };
}
