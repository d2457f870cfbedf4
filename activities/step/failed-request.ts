/** What follows a request that brought no answer: a stop, another attempt, another model, a compaction, or the end; and what it cost. */
import { answerTokens, calculateBudget } from "../config/budget.ts";
import type { StepOutcome } from "../contract/activities.ts";
import { sizeFacts } from "../context/context-size.ts";
import { ModelError, type ModelAnswer, type ModelErrorClass } from "../model/model.ts";
import { modelFailure, limitMs, ONE_MORE_TRY, outOfRoom } from "./model-failure.ts";
import { keepInterrupted, toBill } from "./store-answer.ts";
import { type StepContext, emitEvents } from "./step-context.ts";
import {
  hasLargerAnswer,
  hasEarlierCall,
  type ModelCallRow,
  recordWastedCall,
} from "../store/model-calls.ts";
import { setWindow } from "../store/session-settings.ts";
import { answerCostUsd, costUsd } from "../config/cost.ts";
import { cutChars } from "../text/cut.ts";
import { estimateText } from "../text/tokens.ts";
import { reportCall } from "../runtime/telemetry/report.ts";
import type { Budget } from "../contract/budget.ts";
import type { ModelTarget } from "../config/model-target.ts";
import { appendEvents } from "../store/events.ts";
import { TRIES } from "../contract/tries.ts";

/** A fallback model does not let people wait longer. Chosen: the longest pause between two attempts. */
const LONG_MS = 120_000;
/** A window with less room than this beside prefix and answer is no session's. Chosen: a short task and a result. */
const LEAST_ROOM_TOKENS = 500;

/** The part of the answer that arrived. */
export interface Received {
  text: string;
  reasoning: string;
}

/**
 * Stores the part of the answer that arrived and the request's usage, and reports the failure to watchers.
 * @throws the failure with which the activity ends or is retried; an error that is not the model's is thrown unchanged
 */
export async function afterFailure(
  step: StepContext,
  error: unknown,
  { text, reasoning }: Received,
): Promise<StepOutcome> {
  const { scope, session, input } = step;
  const { epoch } = session;
  const all = text + reasoning;
  if (scope.signal.aborted) {
    if (!scope.stoppedByPerson()) return scope.stopped();
    const context = await keepInterrupted(step, text, estimatedCostUsd(step, all));
    return { kind: "interrupted", context, epoch };
  }
  if (!(error instanceof ModelError)) throw error;
  const isLast = await failedAlike(step, error.class);
  await recordWasted(step, error.message, { finish: error.class, output: all });
  const passing = await asPassing(step, error);
  if (passing === undefined || (passing.mayBeOverflow && scope.tries >= TRIES.beforeTooLarge))
    return overflowed(step, error);
  const { failure, message, retryInMs, final } = modelFailure(passing, isLast);
  const data = { class: passing.class, message, retryInMs, final };
  await emitEvents(step, [{ type: "llm:error", step: input.step, attempt: scope.attempt, data }]);
  const waitMs = limitMs(passing);
  if (waitMs !== undefined && input.hasFallback !== true) return { kind: "limited", waitMs, epoch };
  const isLong = waitMs !== undefined && waitMs > LONG_MS;
  if (input.hasFallback === true && isLong) return { kind: "unavailable", reason: error.class, epoch };
  if (input.hasFallback === true && (final || scope.tries >= TRIES.beforeFallback))
    return { kind: "unavailable", reason: error.class, epoch };
  throw failure;
}

/**
 * An overflow may be another server's behind a gateway: it names a window smaller than what this model has answered. Then it passes
 * like any trouble of the provider. @returns undefined for an overflow that does not
 */
async function asPassing(step: StepContext, error: ModelError): Promise<ModelError | undefined> {
  if (error.class !== "overflow") return error;
  const { servedWindow } = error;
  if (servedWindow === undefined || error.isAsked || !hasRoom(step, servedWindow)) return undefined;
  const at = { sessionId: step.session.id, model: step.session.config.model };
  if (!(await hasLargerAnswer(step.deps.store.db, at, servedWindow))) return undefined;
  const message = `${error.message.replace(/\.?$/, ".")} A larger request was answered before, so this may be another server's window: the request is sent again.`;
  return new ModelError(message, { class: "unavailable", mayBeOverflow: true, cause: error });
}

/**
 * A window that the provider names is the session's until the run ends: compaction makes the request fit into it. Not if no task fits
 * into it: a gateway's small stand-in, or a server that cannot serve the session; the provider's words then tell people.
 */
async function overflowed(step: StepContext, error: ModelError): Promise<StepOutcome> {
  const { deps, session, input, scope, size } = step;
  const { model, contextWindow } = session.config;
  const cleaned = deps.sanitizer.clean(error.message);
  const outcome = {
    kind: "overflow",
    by: "provider",
    said: cleaned,
    context: sizeFacts(size),
    epoch: session.epoch,
  } as const;
  const { servedWindow } = error;
  if (servedWindow === undefined || servedWindow >= contextWindow || !hasRoom(step, servedWindow))
    return outcome;
  await setWindow(deps.store.db, session.id, { model, servedWindow, untilRunEnds: true });
  const message = `${cleaned.replace(/\.?$/, ".")} This window is used until the run ends in place of ${contextWindow} tokens.`;
  const data = { class: error.class, message, retryInMs: null, final: false };
  await emitEvents(step, [{ type: "llm:error", step: input.step, attempt: scope.attempt, data }]);
  return { ...outcome, servedWindow };
}

function hasRoom({ session, measure }: StepContext, servedWindow: number): boolean {
  const { limitTokens } = calculateBudget(session.config, measure.prefixTokens, servedWindow);
  return limitTokens - measure.prefixTokens * measure.ratio >= LEAST_ROOM_TOKENS;
}

/** Failures after which a provider bills its input and output without reporting the amount. Chosen: by what they mean. */
const BILLED: ReadonlySet<string> = new Set<ModelErrorClass>(["silent", "too-long", "malformed"]);

/**
 * The estimated cost in USD of a request without reported usage: by our token count, with the cached share of the last request
 * that had usage. Null if the price is not known.
 * @param output the part of the answer that arrived
 */
function estimatedCostUsd({ session, size, rows }: StepContext, output: string): number | null {
  const { price, tier } = session.config;
  const last = rows.findLast((row) => row.usage !== undefined)?.usage;
  const share = last === undefined || !(last.input > 0) ? 0 : (last.cached ?? 0) / last.input;
  const input = size.next.tokens;
  return costUsd(price, { input, cached: Math.round(share * input), output: estimateText(output) }, { tier });
}

/**
 * Records a request that was, or may have been, billed for nothing. Without reported usage its cost is an estimate; such a row has
 * a cost and no tokens.
 * @param said the part of the answer that arrived before the failure
 */
async function recordWasted(
  step: StepContext,
  error: string,
  {
    answer,
    finish,
    output = "",
  }: { readonly answer?: ModelAnswer; readonly finish: string; readonly output?: string },
): Promise<void> {
  const { sanitizer, store } = step.deps;
  const unbilled = output !== "" || BILLED.has(finish) ? estimatedCostUsd(step, output) : null;
  const bill: ModelCallRow = {
    ...toBill(step),
    status: "wasted",
    error: cutChars(sanitizer.clean(error), 1_000),
    finish,
    usage: answer?.usage,
    costUsd: answer === undefined ? unbilled : answerCostUsd(step.session.config, answer),
  };
  reportCall(step, bill, step.session.config);
  await recordWastedCall(store.db, bill);
}

/** Whether an earlier attempt at this step failed in the same way; queried only if that decides anything. */
function failedAlike(step: StepContext, kind: ModelErrorClass): boolean | Promise<boolean> {
  if (!ONE_MORE_TRY.has(kind)) return false;
  return hasEarlierCall(step.deps.store.db, { ...placeOf(step), attempt: step.scope.attempt }, kind);
}

/** Whether thinking used up an earlier answer of this step. */
export function thoughtInVain(step: StepContext): boolean | Promise<boolean> {
  return step.input.again === true && hasEarlierCall(step.deps.store.db, placeOf(step), "length");
}

function placeOf({ session, input }: StepContext) {
  return { sessionId: session.id, epoch: session.epoch, step: input.step, model: session.config.model };
}

/** How much room an answer was given, in tokens. */
export interface Room {
  readonly tokens: number;
  /** More room than at first, because thinking used up the previous answer. */
  readonly isMore: boolean;
}

type Limits = Pick<ModelTarget, "maxOutput" | "moreOutput">;

/** @param isMore whether thinking used up the previous answer */
export function answerRoom(limits: Limits, budget: Budget, usedTokens: number, isMore: boolean): Room {
  const most = isMore ? largest(limits) : limits.maxOutput;
  return { tokens: answerTokens(budget, most, usedTokens), isMore };
}

/**
 * What follows an answer whose output tokens were used up by thinking: once, the same step with more room, or after a compaction if
 * the conversation leaves no room; then the end. With the same room, the model would use it up by thinking again.
 */
export function afterUsedUp(
  room: Room,
  limits: Limits,
  budget: Budget,
  usedTokens: number,
): "again" | "compact" | "end" {
  if (room.isMore) return "end";
  if (answerRoom(limits, budget, usedTokens, true).tokens > room.tokens) return "again";
  return room.tokens < largest(limits) ? "compact" : "end";
}

function largest({ maxOutput, moreOutput = maxOutput }: Limits): number {
  return Math.max(maxOutput, moreOutput);
}

/** @throws EmptyAnswer (fatal) if thinking used up all that the model can write, and no other model steps in */
export async function emptyAnswer(
  step: StepContext,
  { answer, room, budget }: { readonly answer: ModelAnswer; readonly room: Room; readonly budget: Budget },
): Promise<StepOutcome> {
  const { deps, session, input, scope, size } = step;
  const { config, epoch } = session;
  const usage = answer.usage ?? { input: 0, output: 0, cached: 0, reasoning: 0 };
  if (answer.finish !== "length") {
    const why = answer.reason === undefined ? undefined : deps.sanitizer.clean(answer.reason);
    const reason = why === undefined ? "The answer was empty." : `The answer was empty: ${why}`;
    await recordWasted(step, reason, { answer, finish: answer.finish });
    return { kind: "empty", usage, reason: why, epoch };
  }
  const used = size.next;
  const next = afterUsedUp(room, config, budget, used.tokens);
  const failure = outOfRoom(config.model, room.tokens);
  const usedUp = `${config.model} used up its ${room.tokens} tokens of output by thinking and said nothing.`;
  const more = answerRoom(config, budget, used.tokens, true).tokens;
  const message = {
    again: `${usedUp} It is asked once more, with ${more}.`,
    compact: `${usedUp} The conversation is compacted to make room for more.`,
    end: failure.message,
  }[next];
  await recordWasted(step, usedUp, { answer, finish: answer.finish });
  const data = { class: "used-up", message, retryInMs: null, final: next === "end" };
  const event = { type: "llm:error", step: input.step, attempt: scope.attempt, data } as const;
  await appendEvents(deps.store.db, session.id, epoch, [event]);
  if (next === "again") return { kind: "empty", usage, epoch };
  if (next === "compact") return { kind: "overflow", by: "provider", context: sizeFacts(size), epoch };
  if (input.hasFallback === true) return { kind: "unavailable", reason: "used-up", epoch };
  throw failure;
}
