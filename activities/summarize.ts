/**
 * One compaction round.
 *
 * Idempotency key: (session, epoch, round): a stored round is found before anybody is asked, so a crash after the
 * commit costs no second summary. Side effects: one transaction with summary, marks and event; a bill per request.
 * Heartbeat: by timer. Retry class: the provider's 408/409/429/5xx are retried twice, then the round goes without a
 * model. Cancel: the request is aborted and nothing is written; a cancel never falls back to another summary.
 */
import { inScope, type ActivityScope } from "./activity-scope.ts";
import type { Compaction, CompactionInput, Strategy, Summarise } from "./compaction/strategy.ts";
import { strategyFor } from "./compaction/index.ts";
import { createSummariser, SummariserUnavailable } from "./compaction/summariser.ts";
import type { StoredMessage } from "./context/message.ts";
import { viewSize, type SizeInput } from "./context/size.ts";
import type { CompactionFacts, ContextSize, SummarizeInput } from "./contract.ts";
import type { AgentDeps } from "./deps.ts";
import { enterSession } from "./enter-session.ts";
import { fatal } from "./failures.ts";
import { prefixMaker, type Prefix } from "./model/request.ts";
import { budgetOf } from "./run-policy.ts";
import { findRound, storeFailedRound, storeRound } from "./store/compactions.ts";
import { appendEvents } from "./store/events.ts";
import type { NewEvent } from "./store/event.ts";
import type { Session } from "./store/sessions.ts";
import { loadView, lockRun } from "./store/transcript.ts";
import { systemPrompt } from "./system-prompt.ts";

export function createSummarize(deps: AgentDeps) {
  const prefixFor = prefixMaker(deps.tools);
  return (input: SummarizeInput): Promise<CompactionFacts> =>
    inScope(deps, (scope) => summarize(deps, scope, input, prefixFor));
}

/** A round in hand: everything that was loaded for it. */
interface RoundInHand {
  readonly deps: AgentDeps;
  readonly scope: ActivityScope;
  readonly session: Session;
  readonly input: SummarizeInput;
  readonly strategy: Strategy;
  readonly measure: Omit<SizeInput, "rows">;
  readonly startedAt: number;
}

async function summarize(
  deps: AgentDeps,
  scope: ActivityScope,
  input: SummarizeInput,
  prefixFor: (system: string) => Prefix,
): Promise<CompactionFacts> {
  const { db } = deps.store;
  const session = await enterSession(deps.store, scope, { step: input.step, phase: "model" });
  const { learnt } = session;
  const [rows, done] = await Promise.all([loadView(db, session.id), findRound(db, session.id, input.round)]);
  const { config } = session;
  const prefix = prefixFor(systemPrompt(session.instructions));
  const budget = budgetOf(config, prefix.tokens);
  const measure = {
    prefixTokens: prefix.tokens,
    ratio: learnt?.ratio ?? 1,
    windowTokens: budget.windowTokens,
  };
  const strategy = strategyFor(config.context.strategy);
  const round = { deps, scope, session, input, strategy, measure, startedAt: performance.now() };
  if (done !== undefined) {
    const { tokensBefore: before, tokensAfter: after } = done;
    return { kind: "compacted", round: input.round, before, after, context: contextOf(rows, measure) };
  }
  const { keepMessages, keepRatio } = config.context.options;
  const compaction: CompactionInput = {
    rows,
    budget,
    round: input.round,
    trigger: input.trigger,
    prefixTokens: prefix.tokens,
    summariserWindowTokens: config.contextWindow,
    focus: input.focus,
    keepMessages,
    keepRatio,
    deterministic: input.deterministic,
  };
  const before = contextOf(rows, measure);
  return finish(round, rows, await compactWith(round, compaction, before), before);
}

async function compactWith(
  round: RoundInHand,
  compaction: CompactionInput,
  { used }: ContextSize,
): Promise<Compaction> {
  const { scope, strategy, input } = round;
  const ask = createSummariser({ ...round, step: input.step });
  let announced = false;
  const summarise: Summarise = async (request) => {
    if (!announced) {
      announced = true;
      const data = { trigger: input.trigger, strategy: strategy.name, tokensBefore: used };
      await emit(round, [{ type: "context:compressing", step: input.step, attempt: scope.attempt, data }]);
    }
    return ask(request);
  };
  try {
    return await strategy.compact(compaction, summarise);
  } catch (error) {
    if (scope.signal.aborted) return scope.stopped();
    if (!(error instanceof SummariserUnavailable)) throw error;
    return strategy.compact({ ...compaction, deterministic: true }, summarise);
  }
}

async function finish(
  round: RoundInHand,
  rows: readonly StoredMessage[],
  outcome: Compaction,
  context: ContextSize,
): Promise<CompactionFacts> {
  const { deps, session, scope, input, strategy, measure } = round;
  if (outcome.kind === "nothing") return { kind: "nothing", reason: outcome.reason, context };
  const { before } = outcome;
  const after = outcome.kind === "compacted" ? outcome.after : before;
  const row = {
    sessionId: session.id,
    epoch: session.epoch,
    step: input.step,
    round: input.round,
    trigger: input.trigger,
    strategy: strategy.name,
    attempts: outcome.attempts,
    tokensBefore: before,
    tokensAfter: after,
    durationMs: performance.now() - round.startedAt,
  };
  const event = compressed(round, outcome, after);
  if (outcome.kind === "failed") {
    await deps.store.db.transaction(async (tx) => {
      if (!(await lockRun(tx, session.id, scope.runId))) throw superseded();
      await storeFailedRound(tx, { ...row, reason: outcome.reason });
      await appendEvents(tx, session.id, session.epoch, [event]);
    });
    deps.notifier.wake(session.id);
    return { kind: "failed", reason: outcome.reason, context };
  }
  const stored = await storeRound(deps.store, scope.runId, { ...row, ...outcome }, event);
  if (stored === "superseded") throw superseded();
  deps.notifier.wake(session.id);
  const view =
    stored === "there"
      ? await loadView(deps.store.db, session.id)
      : viewAfter(rows, outcome, session.epoch, input);
  return { kind: "compacted", round: input.round, before, after, context: contextOf(view, measure) };
}

function superseded(): Error {
  return fatal("Superseded", "A newer run has taken over this session; the summary was dropped.");
}

/** The view as the store would give it now: it is known, so it is not loaded again. */
function viewAfter(
  rows: readonly StoredMessage[],
  outcome: Extract<Compaction, { kind: "compacted" }>,
  epoch: number,
  { step, round }: SummarizeInput,
): StoredMessage[] {
  const gone = new Set(outcome.replaced);
  const summary: StoredMessage = {
    role: "assistant",
    content: [{ type: "text", text: outcome.summary }],
    // Later than all that is there.
    sequence: Math.max(...rows.map((row) => row.sequence)) + 1,
    position: outcome.position,
    epoch,
    step,
    slot: `summary:${round}`,
    kind: "summary",
    tokens: outcome.summaryTokens,
    compactedRound: undefined,
    prunedStep: undefined,
  };
  const kept = rows.filter((row) => !gone.has(row.sequence));
  const at = kept.findIndex((row) => row.position > outcome.position);
  return at === -1 ? [...kept, summary] : kept.toSpliced(at, 0, summary);
}

function compressed(
  { input, strategy, scope }: RoundInHand,
  outcome: Exclude<Compaction, { kind: "nothing" }>,
  tokensAfter: number,
): NewEvent {
  return {
    type: "context:compressed",
    step: input.step,
    attempt: scope.attempt,
    data: {
      round: input.round,
      strategy: strategy.name,
      trigger: input.trigger,
      tokensBefore: outcome.before,
      tokensAfter,
      messages: outcome.kind === "compacted" ? outcome.replaced.length : 0,
      status: outcome.kind,
      reason: outcome.kind === "failed" ? outcome.reason : null,
    },
  };
}

function contextOf(rows: SizeInput["rows"], measure: Omit<SizeInput, "rows">): ContextSize {
  const { next, prunableTokens } = viewSize({ rows, ...measure });
  return { used: next.tokens, estimated: next.estimated, prunable: prunableTokens };
}

async function emit({ deps, session }: RoundInHand, events: readonly NewEvent[]): Promise<void> {
  await appendEvents(deps.store.db, session.id, session.epoch, events);
  deps.notifier.wake(session.id);
}
