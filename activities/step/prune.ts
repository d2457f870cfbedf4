/**
 * Hides old tool results from the view. Before a step, it delivers the waiting messages first.
 *
 * Idempotency key: the marks themselves: what is marked is skipped. Side effects: messages; marks and an event, in one
 * transaction. Heartbeat: by timer. Retry class: Postgres. Cancel: nothing to undo.
 */
import { inScope, type ActivityScope } from "../runtime/activity-scope.ts";
import { planPrune } from "../transcript/prune-plan.ts";
import { toContextSize, toMeasure } from "../context/context-size.ts";
import type { PruneFacts, PruneInput } from "../contract/activities.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import { enterSession } from "../runtime/enter-session.ts";
import { deliverGuidance } from "./guidance.ts";
import { superseded } from "../contract/failures.ts";
import { buildPrefix } from "../context/request.ts";
import { calculateBudget } from "../config/budget.ts";
import { storePrune } from "../store/compactions.ts";
import { loadView } from "../store/load-view.ts";

export function createPrune(deps: AgentDeps) {
  return (input: PruneInput): Promise<PruneFacts> => inScope(deps, (scope) => prune(deps, scope, input));
}

async function prune(deps: AgentDeps, scope: ActivityScope, input: PruneInput): Promise<PruneFacts> {
  const { db } = deps.store;
  const { step } = input;
  // All results of the step are stored, so a run that was reset to here keeps them.
  const session = await enterSession(deps, scope, { step: step + 1, phase: "model", round: "earlier" });
  const prefix = buildPrefix(session, deps.tools);
  const budget = calculateBudget(session.config, prefix.tokens);
  const delivered = input.delivers
    ? await deliverGuidance(deps, scope, session, {
        step: step + 1,
        guidance: input.guidance,
        roomTokens: budget.userTokens,
      })
    : {};
  const rows = await loadView(db, session.id);
  const { sequences, savedTokens } = planPrune(rows, budget);
  if (sequences.length > 0) {
    const at = { sessionId: session.id, epoch: session.epoch, step };
    if ((await storePrune(deps.store, scope.runId, at, { sequences, savedTokens })) === "superseded") {
      throw superseded("nothing was hidden");
    }
  }
  const hidden = new Set(sequences);
  const after = rows.map((row) => (hidden.has(row.sequence) ? { ...row, prunedStep: step } : row));
  const context = toContextSize(after, toMeasure(session, prefix));
  const prunable =
    // Nothing could be hidden, so pruning is not due again before the next step.
    sequences.length === 0 ? Math.min(context.prunable, budget.pruneProtectTokens) : context.prunable;
  return { ...delivered, pruned: sequences.length, savedTokens, context: { ...context, prunable } };
}
