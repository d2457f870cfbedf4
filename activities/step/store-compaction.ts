/** How a compaction ends: its summary is stored and checked, or its newest round is undone. */
import { type ActivityScope, inScope } from "../runtime/activity-scope.ts";
import type { StoredMessage } from "../contract/message.ts";
import { toContextSize, type Measure, toMeasure } from "../context/context-size.ts";
import { tokensSaved } from "../transcript/view.ts";
import type {
  SummarizeInput,
  CompactionOutcome,
  UndoCompactionInput,
  UndoneFacts,
} from "../contract/activities.ts";
import type { ContextSize } from "../contract/request-size.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import { superseded } from "../contract/failures.ts";
import { storeFailedRound, storePrune, storeRound, undoAndAnnounce } from "../store/compactions.ts";
import { appendEvents } from "../store/events.ts";
import type { NewEvent } from "../store/event.ts";
import type { Session } from "../store/sessions.ts";
import { loadView } from "../store/load-view.ts";
import { lockRun } from "../store/session-locks.ts";
import { reportRound } from "../runtime/telemetry/report.ts";
import type { StrategyName } from "../config/strategies.ts";
import type { Compaction } from "../compaction/compaction.ts";
import { enterSession } from "../runtime/enter-session.ts";
import { buildPrefix } from "../context/request.ts";

/** Everything that was loaded for one compaction. */
export interface CompactionContext {
  readonly deps: AgentDeps;
  readonly scope: ActivityScope;
  readonly session: Session;
  readonly input: SummarizeInput;
  readonly strategy: StrategyName;
  readonly measure: Measure;
  /** The view before the compaction, and its size. */
  readonly rows: readonly StoredMessage[];
  readonly context: ContextSize;
  /** Usage rows being written: the compaction is not reported as done before they are stored. */
  readonly writes: Promise<unknown>[];
  readonly startedAt: number;
}

/** @throws Superseded (fatal) if a newer run took over meanwhile: nothing was written */
export async function finishCompaction(
  compaction: CompactionContext,
  outcome: Compaction,
): Promise<CompactionOutcome> {
  const { context, measure } = compaction;
  // A summary is stored in parallel with its usage rows; the compaction is done when both are stored.
  if (outcome.kind !== "compacted") await Promise.all(compaction.writes);
  switch (outcome.kind) {
    case "nothing":
      return { kind: "nothing", reason: outcome.reason, context };
    case "pruned": {
      if (outcome.failed !== undefined) await storeFailed(compaction, outcome.failed);
      const hidden = await storeHidden(compaction, outcome);
      return {
        kind: "pruned",
        hidden,
        context: toContextSize(withHidden(compaction, outcome.hidden), measure),
      };
    }
    case "failed":
      await storeFailed(compaction, outcome);
      return { kind: "failed", reason: outcome.reason, context };
    case "compacted":
      return storeCompacted(compaction, outcome);
  }
}

type Compacted = Extract<Compaction, { kind: "compacted" }>;
type Failed = Extract<Compaction, { kind: "failed" }>;
type Ended = Compacted | Failed;

async function storeFailed(compaction: CompactionContext, outcome: Failed): Promise<void> {
  const { deps, session, scope } = compaction;
  const { sessionId, ...row } = rowOf(compaction, outcome);
  await deps.store.db.transaction(async (tx) => {
    if (!(await lockRun(tx, sessionId, scope.runId))) throw superseded("the summary was dropped");
    await storeFailedRound(tx, { ...row, sessionId, reason: outcome.reason });
    await appendEvents(tx, sessionId, session.epoch, [compressed(compaction, outcome)]);
  });
  report(compaction, outcome);
}

async function storeCompacted(compaction: CompactionContext, outcome: Compacted): Promise<CompactionOutcome> {
  const { deps, session, scope, measure, input } = compaction;
  const { before, after, hidden } = outcome;
  const data = { prunedCount: hidden.length, savedTokens: savedBy(compaction, hidden) };
  const pruned: NewEvent[] = hidden.length === 0 ? [] : [{ type: "context:pruned", step: input.step, data }];
  const row = { ...rowOf(compaction, outcome), ...outcome };
  const events = [compressed(compaction, outcome), ...pruned];
  const [stored] = await Promise.all([
    storeRound(deps.store, scope.runId, row, events),
    ...compaction.writes,
  ]);
  if (stored === "superseded") throw superseded("the summary was dropped");
  report(compaction, outcome);
  // The new view is known here; it has to be read only if another attempt stored the round.
  const view =
    stored === "there"
      ? await loadView(deps.store.db, session.id)
      : viewAfter(compaction, outcome, session.epoch);
  return { kind: "compacted", round: input.round, before, after, context: toContextSize(view, measure) };
}

async function storeHidden(
  compaction: CompactionContext,
  { hidden }: Extract<Compaction, { kind: "pruned" }>,
): Promise<number> {
  const { deps, session, scope, input } = compaction;
  const marks = { sequences: hidden, savedTokens: savedBy(compaction, hidden) };
  const at = { sessionId: session.id, epoch: session.epoch, step: input.step };
  const count = await storePrune(deps.store, scope.runId, at, marks);
  if (count === "superseded") throw superseded("the summary was dropped");
  return count;
}

function report(compaction: CompactionContext, outcome: Ended): void {
  const { step, round, trigger, strategy, tokensBefore, tokensAfter } = rowOf(compaction, outcome);
  const status = outcome.kind;
  reportRound(compaction, { step, round, trigger, strategy, status, tokensBefore, tokensAfter });
}

function rowOf({ session, input, strategy, startedAt }: CompactionContext, outcome: Ended) {
  return {
    sessionId: session.id,
    epoch: session.epoch,
    step: input.step,
    round: input.round,
    trigger: input.trigger,
    strategy,
    attempts: outcome.attempts,
    tokensBefore: outcome.before,
    tokensAfter: outcome.kind === "compacted" ? outcome.after : outcome.before,
    durationMs: performance.now() - startedAt,
  };
}

function compressed({ input, strategy, scope }: CompactionContext, outcome: Ended): NewEvent {
  return {
    type: "context:compressed",
    step: input.step,
    attempt: scope.attempt,
    data: {
      round: input.round,
      strategy,
      trigger: input.trigger,
      tokensBefore: outcome.before,
      tokensAfter: outcome.kind === "compacted" ? outcome.after : outcome.before,
      messages: outcome.kind === "compacted" ? outcome.replaced.length : 0,
      status: outcome.kind,
      reason: outcome.kind === "failed" ? outcome.reason : null,
    },
  };
}

function withHidden({ rows, input }: CompactionContext, hidden: readonly number[]): StoredMessage[] {
  const marked = new Set(hidden);
  return rows.map((row) => (marked.has(row.sequence) ? { ...row, prunedStep: input.step } : row));
}

function savedBy({ rows }: CompactionContext, hidden: readonly number[]): number {
  const marked = new Set(hidden);
  return rows.reduce((sum, row) => sum + (marked.has(row.sequence) ? tokensSaved(row) : 0), 0);
}

/** The view as the store would give it after the round. */
function viewAfter(compaction: CompactionContext, outcome: Compacted, epoch: number): StoredMessage[] {
  const { step, round: number } = compaction.input;
  const replaced = new Set(outcome.replaced);
  const rows = withHidden(compaction, outcome.hidden);
  const summary: StoredMessage = {
    role: "assistant",
    content: [{ type: "text", text: outcome.summary }],
    // Later than all rows of the view.
    sequence: Math.max(...rows.map((row) => row.sequence)) + 1,
    position: outcome.position,
    epoch,
    step,
    slot: `summary:${number}`,
    kind: "summary",
    tokens: outcome.summaryTokens,
    prunedStep: undefined,
  };
  const remaining = rows.filter((row) => !replaced.has(row.sequence));
  const at = remaining.findIndex((row) => row.position > outcome.position);
  return at === -1 ? [...remaining, summary] : remaining.toSpliced(at, 0, summary);
}

/**
 * Undoes the newest compaction, between two steps.
 *
 * Idempotency key: the request's id, which the round's event keeps. Side effects: one transaction with marks and event.
 * Heartbeat: by timer. Retry class: Postgres. Cancel: nothing to undo.
 */
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
  const rows = await loadView(db, session.id);
  const prefix = buildPrefix(session, deps.tools);
  const context = toContextSize(rows, toMeasure(session, prefix));
  return undone === undefined
    ? { kind: "nothing", reason: "No compaction round is left to undo.", context }
    : { kind: "undone", round: undone.round, context };
}
