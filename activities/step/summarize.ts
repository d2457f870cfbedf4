/**
 * One compaction round.
 *
 * Idempotency key: (session, epoch, round): a stored round is found before a model is asked, so a crash after the
 * commit costs no second summary. Side effects: one transaction with summary, marks and event; a bill per request.
 * Heartbeat: by timer. Retry class: the provider's 408/409/429/5xx are retried twice, then the round continues without
 * a model. Cancel: the request is aborted and nothing is written; a cancel never falls back to another summary.
 */
import type { RunConfig } from "../config/agent-config.ts";
import { inScope, type ActivityScope } from "../runtime/activity-scope.ts";
import { finishCompaction, type CompactionContext } from "./store-compaction.ts";
import { compact } from "../compaction/compact.ts";
import {
  type Compaction,
  type CompactionInput,
  type Summarise,
  SummariserOverflow,
  type SummaryRequest,
} from "../compaction/compaction.ts";
import { withAskedModel } from "./step-context.ts";
import { sizeAtTrigger, toContextSize, toMeasure, type Measure } from "../context/context-size.ts";
import { deliverGuidance } from "./guidance.ts";
import type { Budget } from "../contract/budget.ts";
import { tokensOf } from "../transcript/boundary.ts";
import type { TokenRatio } from "../contract/request-size.ts";
import type { CompactionFacts, SummarizeInput } from "../contract/activities.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import { enterReading } from "../runtime/enter-session.ts";
import { holdToModels } from "../runtime/hold-to-policy.ts";
import { buildPrefix } from "../context/request.ts";
import { calculateBudget } from "../config/budget.ts";
import { recentRounds, type RecentRound } from "../store/compactions.ts";
import type { Standpoint } from "../store/lines.ts";
import { appendEvents } from "../store/events.ts";
import { loadRatio, type ModelCallRow, learnFrom, recordCall } from "../store/model-calls.ts";
import type { Session } from "../store/sessions.ts";
import { loadView } from "../store/load-view.ts";
import { answerCostUsd } from "../config/cost.ts";
import type { ModelTarget } from "../config/model-target.ts";
import { cutChars } from "../text/cut.ts";
import type { RawAnswer } from "../compaction/summary-check.ts";
import { reportCall } from "../runtime/telemetry/report.ts";
import { ModelError, type ModelAnswer } from "../model/model.ts";
import { givingBack, holdToBudgets } from "./hold-to-budgets.ts";
import { holdToRate } from "./hold-to-rate.ts";
import { modelFailure, limitMs } from "./model-failure.ts";
import { modelDeadlines } from "../config/run-policy.ts";
import { TRIES } from "../contract/tries.ts";

/** No model can write a summary now: the compaction continues without one. */
class SummariserUnavailable extends Error {
  override readonly name = "SummariserUnavailable";
}

/** The model is limited until a time that its provider stated, for which the run waits. */
class SummariserLimited extends Error {
  override readonly name = "SummariserLimited";
  readonly waitMs: number;

  constructor(waitMs: number, cause: ModelError) {
    super(cause.message, { cause });
    this.waitMs = waitMs;
  }
}

interface SummariserDeps {
  readonly deps: Pick<AgentDeps, "model" | "store" | "sanitizer" | "telemetry" | "policy">;
  readonly scope: Pick<
    ActivityScope,
    "signal" | "attempt" | "tries" | "elapsedMs" | "runId" | "lostAttempts" | "waits" | "waited"
  >;
  readonly session: Session;
  readonly step: number;
  /** The run waits for the end of a limit. */
  readonly waitsForLimits: boolean;
  /** The ratio of the summariser's token count to our estimate. */
  readonly tokenRatio: TokenRatio | undefined;
  /** Takes a write that must finish before the compaction does, and that nothing else waits for. */
  readonly later: (write: Promise<unknown>) => void;
}

/** The model that writes a session's summaries: one with its own window and wire, or the session's own. */
function summariserOf(config: RunConfig): ModelTarget {
  return config.summariser === undefined
    ? config
    : { ...config.summariser, input: config.summariser.input ?? ["text"] };
}

/**
 * @returns a port that asks the configured summary model, or the session's own
 * @throws SummariserOverflow, SummariserUnavailable, SummariserLimited; a retryable ModelUnavailable in the first attempts; on abort
 *   the signal's reason
 */
function createSummariser(summariser: SummariserDeps): Summarise {
  const { deps, scope, session, step, tokenRatio, later } = summariser;
  const target = summariserOf(session.config);
  const bill = (request: SummaryRequest, answer: ModelAnswer | undefined, error?: string) =>
    recordBill(summariser, target, { request, answer, error });
  let billed = Promise.resolve();
  return async (request) => {
    let answer: ModelAnswer;
    const maxOutputTokens = Math.min(request.maxOutputTokens, target.maxOutput);
    const tokens = request.tokens + maxOutputTokens;
    // A bill ends the session's reservation: the one before must be stored.
    await billed.catch(() => undefined);
    const holder = { deps, scope, session, step };
    const release = await holdToBudgets(holder, target, { input: request.tokens, output: maxOutputTokens });
    if ("overBudget" in release) throw new SummariserUnavailable(release.overBudget);
    const settle = await holdToRate(holder, target, tokens).catch(givingBack(release));
    try {
      answer = await deps.model.ask(
        {
          target,
          system: request.system,
          messages: [{ role: "user", content: [{ type: "text", text: request.text }] }],
          tools: [],
          maxOutputTokens,
          cacheKey: session.id,
          deadlines: modelDeadlines(session.config, scope.elapsedMs()),
          estimatedTokens: request.tokens,
        },
        () => undefined,
        scope.signal,
      );
      await settle(answer.usage);
    } catch (error) {
      await settle();
      // The request may be billed up to this point. The stop takes effect even if this cannot be recorded.
      if (scope.signal.aborted) await bill(request, undefined, "It was aborted.").catch(() => undefined);
      if (scope.signal.aborted || !(error instanceof ModelError)) throw error;
      await bill(request, undefined, error.message);
      await release();
      const waitMs = limitMs(error);
      if (waitMs !== undefined && summariser.waitsForLimits && target.model === session.config.model) {
        await reportLimit(summariser, error, waitMs);
        throw new SummariserLimited(waitMs, error);
      }
      throw translated(error, scope.tries);
    }
    billed = bill(request, answer);
    later(billed);
    later(
      learnFrom(deps.store.db, target.model, tokenRatio, {
        estimatedTokens: request.tokens,
        usage: answer.usage,
      }),
    );
    return rawAnswer(answer, (text) => deps.sanitizer.clean(text));
  };
}

/** People are told until when, as for a step. A summariser of its own is not waited for: there is a summary without a model. */
async function reportLimit(
  { deps, scope, session, step }: SummariserDeps,
  error: ModelError,
  waitMs: number,
): Promise<void> {
  const message = deps.sanitizer.clean(error.message);
  const data = { class: error.class, message, retryInMs: waitMs, final: false };
  const event = { type: "llm:error", step, attempt: scope.attempt, data } as const;
  await appendEvents(deps.store.db, session.id, session.epoch, [event]);
}

interface SummaryCall {
  readonly request: SummaryRequest;
  /** Absent if the request failed, or was aborted. */
  readonly answer: ModelAnswer | undefined;
  readonly error: string | undefined;
}

function recordBill(
  { deps, scope, session, step }: SummariserDeps,
  target: ModelTarget,
  { request, answer, error }: SummaryCall,
): Promise<void> {
  const call: ModelCallRow = {
    sessionId: session.id,
    epoch: session.epoch,
    step,
    attempt: scope.attempt,
    purpose: "summary",
    model: target.model,
    status: answer === undefined ? "wasted" : "kept",
    estimatedInput: request.tokens,
    estimatePure: true,
    usage: answer?.usage,
    costUsd: answerCostUsd(target, answer),
    ...(answer === undefined
      ? {}
      : { finish: answer.finish, firstTokenMs: answer.firstTokenMs, durationMs: answer.durationMs }),
    error: error === undefined ? undefined : cutChars(deps.sanitizer.clean(error), 1_000),
  };
  reportCall({ deps, scope, session }, call, target);
  return recordCall(deps.store.db, call);
}

function translated(error: ModelError, tries: number): Error {
  if (error.class === "overflow") return new SummariserOverflow(error.message, { cause: error });
  // No retry after a timeout or an unreadable answer: there is a summary without a model.
  const { failure, final } = modelFailure(error, error.class === "too-long" || tries >= TRIES.ofTheSame);
  return final || tries >= TRIES.beforeNoModel
    ? new SummariserUnavailable(error.message, { cause: error })
    : failure;
}

function rawAnswer(answer: ModelAnswer, clean: (text: string) => string): RawAnswer {
  const text = answer.content.map((part) => (part.type === "text" ? part.text : "")).join("");
  const hasToolCall = answer.content.some((part) => part.type === "tool-call");
  return { text: clean(text), finish: answer.finish, hasToolCall };
}

export function createSummarize(deps: AgentDeps) {
  return (input: SummarizeInput): Promise<CompactionFacts> =>
    inScope(deps, (scope) => summarize(deps, scope, input), TRIES.summary);
}

const UNDER_TRIGGER = "by the provider's own count the request is under the trigger";

async function summarize(
  deps: AgentDeps,
  scope: ActivityScope,
  input: SummarizeInput,
): Promise<CompactionFacts> {
  const { db } = deps.store;
  const at: Standpoint = { step: input.step, phase: "model", round: input.round - 1 };
  const read = () => Promise.all([loadView(db, scope.sessionId), recentRounds(db, scope.sessionId)]);
  const [entered, [early, rounds]] = await enterReading(deps, scope, at, read);
  holdToModels(deps, entered);
  const session = await withAskedModel(deps, entered, input.fallback);
  const tokenRatio = await ratioOfSummariser(deps, session);
  const { config } = session;
  const prefix = buildPrefix(session, deps.tools);
  const budget = calculateBudget(config, prefix.tokens);
  const delivered = await deliverGuidance(deps, scope, session, {
    step: input.step,
    guidance: input.guidance,
    roomTokens: budget.userTokens,
  });
  const rows = delivered.taken ? await loadView(db, scope.sessionId) : early;
  const measure = toMeasure(session, prefix);
  const estimate = toContextSize(rows, measure);
  const compacted = rounds.find(({ round, status }) => round === input.round && status === "compacted");
  if (compacted !== undefined) {
    const { tokensBefore: before, tokensAfter: after } = compacted;
    return { ...delivered, kind: "compacted", round: input.round, before, after, context: estimate };
  }
  const context =
    input.trigger === "threshold"
      ? await sizeAtTrigger({ deps, scope, session, prefix, rows }, estimate, budget)
      : estimate;
  if (context !== estimate && context.used < budget.triggerTokens)
    return { ...delivered, kind: "nothing", reason: UNDER_TRIGGER, context };
  const { strategy } = config.context;
  const startedAt = performance.now();
  const writes: Promise<unknown>[] = [];
  const round = { deps, scope, session, input, strategy, measure, rows, context, writes, startedAt };
  const compaction: CompactionInput = {
    rows,
    budget,
    round: input.round,
    trigger: input.trigger,
    prefixTokens: prefix.tokens,
    targetTokens: targetTokens(input, budget, measure, prefix.tokens + tokensOf(rows)),
    ...summariserFigures(config, tokenRatio),
    focus: input.focus === undefined ? undefined : deps.sanitizer.clean(input.focus),
    options: config.context.options,
    deterministic: input.deterministic === true || inflatedLately(rounds, input),
  };
  const outcome = await compactWith(round, compaction, tokenRatio);
  if (outcome.kind !== "limited") return { ...delivered, ...(await finishCompaction(round, outcome)) };
  await Promise.all(writes);
  return { ...delivered, ...outcome, context };
}

function ratioOfSummariser(
  deps: AgentDeps,
  { config, tokenRatio }: Session,
): Promise<TokenRatio | undefined> | TokenRatio | undefined {
  const { model } = summariserOf(config);
  return model === config.model ? tokenRatio : loadRatio(deps.store.db, model);
}

/** The input and output limits of a session's summariser: its window by our count, corrected by its own usage. */
function summariserFigures(config: RunConfig, tokenRatio: TokenRatio | undefined) {
  const { contextWindow, maxOutput } = summariserOf(config);
  return {
    summariserRoomTokens: Math.floor(contextWindow / Math.max(1, tokenRatio?.ratio ?? 1)),
    summariserMaxOutput: maxOutput,
  };
}

/** How many rounds continue without a model after a summary that was larger than what it replaced. */
const ROUNDS_WITHOUT_MODEL = 3;

/** A model that could not shorten this history is not asked at once again, unless a person or an overflow forces it. */
function inflatedLately(rounds: readonly RecentRound[], { trigger, round }: SummarizeInput): boolean {
  return (
    trigger === "threshold" &&
    rounds.some(
      (earlier) => earlier.outcomes.includes("inflated") && round - earlier.round <= ROUNDS_WITHOUT_MODEL,
    )
  );
}

/** Share of the messages of a request that the provider refused a second time, although it fits by our count. */
const REFUSED_AGAIN_SHARE = 0.5;
/** Share of the limit that a request is reduced to, which leaves room for the estimate's error. */
const LIMIT_SHARE = 0.9;
const LIMIT_AGAIN_SHARE = 0.6;

/** The largest size of the request after the round, by our count. */
function targetTokens(
  { trigger, deterministic }: SummarizeInput,
  budget: Budget,
  { ratio, prefixTokens }: Pick<Measure, "ratio" | "prefixTokens">,
  before: number,
): number {
  const again = trigger === "overflow" && deterministic === true;
  const limit = budget.limitTokens / ratio;
  const byOurCount = limit * (again ? LIMIT_AGAIN_SHARE : LIMIT_SHARE);
  if (!again || before > limit) return Math.floor(byOurCount);
  const messages = (before - prefixTokens) * REFUSED_AGAIN_SHARE;
  return Math.floor(Math.min(byOurCount, prefixTokens + messages));
}

async function compactWith(
  round: CompactionContext,
  compaction: CompactionInput,
  tokenRatio: TokenRatio | undefined,
): Promise<Compaction | { readonly kind: "limited"; readonly waitMs: number }> {
  const { scope, strategy, input } = round;
  const later = (write: Promise<unknown>) => {
    write.catch(() => undefined);
    round.writes.push(write);
  };
  const { step, waitsForLimits = false } = input;
  const ask = createSummariser({ ...round, step, waitsForLimits, tokenRatio, later });
  let announced: Promise<void> | undefined;
  const summarise: Summarise = async (request) => {
    // In parallel with the first request; a failure is reported later. An earlier, deferred attempt has announced it already.
    announced ??= round.scope.waits > 0 ? Promise.resolve() : announce(round);
    announced.catch(() => undefined);
    try {
      return await ask(request);
    } finally {
      await announced;
    }
  };
  try {
    return await compact(strategy, compaction, summarise);
  } catch (error) {
    if (scope.signal.aborted) return scope.stopped();
    if (error instanceof SummariserLimited) return { kind: "limited", waitMs: error.waitMs };
    if (!(error instanceof SummariserUnavailable)) throw error;
    return compact(strategy, { ...compaction, deterministic: true }, summarise);
  }
}

async function announce({
  deps,
  session,
  scope,
  input,
  strategy,
  context,
}: CompactionContext): Promise<void> {
  const data = { trigger: input.trigger, strategy, tokensBefore: context.used };
  await appendEvents(deps.store.db, session.id, session.epoch, [
    { type: "context:compressing", step: input.step, attempt: scope.attempt, data },
  ]);
}
