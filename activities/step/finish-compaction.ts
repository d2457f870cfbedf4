/** What a strategy decided, stored: one transaction, then facts for the workflow. */
import type { ActivityScope } from "../runtime/activity-scope.ts";
import type { StoredMessage } from "../contract/message.ts";
import { contextSizeOf, type Measure } from "../context/context-size.ts";
import { tokensSaved } from "../transcript/view.ts";
import type { CompactionFacts, ContextSize, SummarizeInput } from "../contract/activities.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import { fatal } from "../contract/failures.ts";
import { storeFailedRound, storePrune, storeRound } from "../store/compactions.ts";
import { appendEvents } from "../store/events.ts";
import type { NewEvent } from "../store/event.ts";
import type { Session } from "../store/sessions.ts";
import { loadView } from "../store/load-view.ts";
import { lockRun } from "../store/transcript.ts";
import type { StrategyName } from "../contract/strategies.ts";
import type { Compaction } from "../compaction/compaction.ts";

/** A round in hand: everything that was loaded for it. */
export interface RoundInHand {
  readonly deps: AgentDeps;
  readonly scope: ActivityScope;
  readonly session: Session;
  readonly input: SummarizeInput;
  readonly strategy: StrategyName;
  readonly measure: Measure;
  /** The view before it, and its size. */
  readonly rows: readonly StoredMessage[];
  readonly context: ContextSize;
  /** Bills that are on their way: nothing says that the round is over before they are stored. */
  readonly writes: Promise<unknown>[];
  readonly startedAt: number;
}

/** @throws Superseded (fatal) where a newer run took over meanwhile: nothing was written */
export async function finishRound(round: RoundInHand, outcome: Compaction): Promise<CompactionFacts> {
  const { context, measure, deps, session } = round;
  // A round is stored beside its bills, not after them, and is over when both are stored.
  if (outcome.kind !== "compacted") await Promise.all(round.writes);
  switch (outcome.kind) {
    case "nothing":
      return { kind: "nothing", reason: outcome.reason, context };
    case "pruned": {
      const hidden = await storeHidden(round, outcome);
      return { kind: "pruned", hidden, context: contextSizeOf(withHidden(round, outcome.hidden), measure) };
    }
    case "failed": {
      const { sessionId, ...row } = rowOf(round, outcome);
      await deps.store.db.transaction(async (tx) => {
        if (!(await lockRun(tx, sessionId, round.scope.runId))) throw superseded();
        await storeFailedRound(tx, { ...row, sessionId, reason: outcome.reason });
        await appendEvents(tx, sessionId, session.epoch, [compressed(round, outcome)]);
      });
      deps.notifier.wake(sessionId);
      return { kind: "failed", reason: outcome.reason, context };
    }
    case "compacted":
      return storeCompacted(round, outcome);
  }
}

type Compacted = Extract<Compaction, { kind: "compacted" }>;
type Ended = Compacted | Extract<Compaction, { kind: "failed" }>;

async function storeCompacted(round: RoundInHand, outcome: Compacted): Promise<CompactionFacts> {
  const { deps, session, scope, measure, input } = round;
  const { before, after, hidden } = outcome;
  const data = { prunedCount: hidden.length, savedTokens: savedBy(round, hidden) };
  const pruned: NewEvent[] = hidden.length === 0 ? [] : [{ type: "context:pruned", step: input.step, data }];
  const row = { ...rowOf(round, outcome), ...outcome };
  const events = [compressed(round, outcome), ...pruned];
  const [stored] = await Promise.all([storeRound(deps.store, scope.runId, row, events), ...round.writes]);
  if (stored === "superseded") throw superseded();
  deps.notifier.wake(session.id);
  // What is in view now is known; only another attempt's round has to be read.
  const view =
    stored === "there" ? await loadView(deps.store.db, session.id) : viewAfter(round, outcome, session.epoch);
  return { kind: "compacted", round: input.round, before, after, context: contextSizeOf(view, measure) };
}

async function storeHidden(
  round: RoundInHand,
  { hidden }: Extract<Compaction, { kind: "pruned" }>,
): Promise<number> {
  const { deps, session, scope, input } = round;
  const marks = { sequences: hidden, savedTokens: savedBy(round, hidden) };
  const at = { sessionId: session.id, epoch: session.epoch, step: input.step };
  const count = await storePrune(deps.store, scope.runId, at, marks);
  if (count === "superseded") throw superseded();
  deps.notifier.wake(session.id);
  return count;
}

function rowOf({ session, input, strategy, startedAt }: RoundInHand, outcome: Ended) {
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

function compressed({ input, strategy, scope }: RoundInHand, outcome: Ended): NewEvent {
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

function superseded(): Error {
  return fatal("Superseded", "A newer run has taken over this session; the summary was dropped.");
}

function withHidden({ rows, input }: RoundInHand, hidden: readonly number[]): StoredMessage[] {
  const marked = new Set(hidden);
  return rows.map((row) => (marked.has(row.sequence) ? { ...row, prunedStep: input.step } : row));
}

function savedBy({ rows }: RoundInHand, hidden: readonly number[]): number {
  const marked = new Set(hidden);
  return rows.reduce((sum, row) => sum + (marked.has(row.sequence) ? tokensSaved(row) : 0), 0);
}

/** The view as the store would give it after the round. */
function viewAfter(round: RoundInHand, outcome: Compacted, epoch: number): StoredMessage[] {
  const { step, round: number } = round.input;
  const gone = new Set(outcome.replaced);
  const rows = withHidden(round, outcome.hidden);
  const summary: StoredMessage = {
    role: "assistant",
    content: [{ type: "text", text: outcome.summary }],
    // Later than all that is there.
    sequence: Math.max(...rows.map((row) => row.sequence)) + 1,
    position: outcome.position,
    epoch,
    step,
    slot: `summary:${number}`,
    kind: "summary",
    tokens: outcome.summaryTokens,
    prunedStep: undefined,
  };
  const kept = rows.filter((row) => !gone.has(row.sequence));
  const at = kept.findIndex((row) => row.position > outcome.position);
  return at === -1 ? [...kept, summary] : kept.toSpliced(at, 0, summary);
}
