/** What follows a request without an answer: a stop, another attempt, another model, a compaction, or the end. */
import { budgetOf } from "../config/run-policy.ts";
import type { StepOutcome } from "../contract/activities.ts";
import { sizeFacts } from "../context/context-size.ts";
import { ModelError } from "../model/model.ts";
import { failureOf, limitMs, mayStepIn } from "./model-failure.ts";
import { keepInterrupted } from "./store-answer.ts";
import type { StepContext } from "./step-context.ts";
import { emitEvents } from "./step-events.ts";
import { hasLargerAnswer } from "../store/model-calls.ts";
import { setWindow } from "../store/session-settings.ts";
import { estimatedCostUsd, failedAlike, recordWasted } from "./wasted-call.ts";

/** A fallback model does not let people wait longer. Source: ours, the longest pause between two attempts. */
const LONG_MS = 120_000;
/** Attempts after which a request for which there is no room at the moment counts as one that does not fit. Source: ours, two minutes. */
const PASSING_ATTEMPTS = 8;
/** A window with less room than this beside prefix and answer is no session's. Source: ours, a short task and a result. */
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
  await recordWasted(step, error.message, { finish: error.class, said: all });
  const attempt = scope.attempt - scope.waits;
  const passing = await asPassing(step, error);
  if (passing === undefined || (passing.mayBeOverflow && attempt >= PASSING_ATTEMPTS))
    return overflowed(step, error);
  const { failure, message, retryInMs, final } = failureOf(passing, isLast);
  const data = { class: passing.class, message, retryInMs, final };
  await emitEvents(step, [{ type: "llm:error", step: input.step, attempt: scope.attempt, data }]);
  const waitMs = limitMs(passing);
  if (waitMs !== undefined && input.hasFallback !== true) return { kind: "limited", waitMs, epoch };
  const isLong = waitMs !== undefined && waitMs > LONG_MS;
  if (input.hasFallback === true && isLong) return { kind: "unavailable", reason: error.class, epoch };
  if (input.hasFallback === true && mayStepIn({ final }, attempt))
    return { kind: "unavailable", reason: error.class, epoch };
  throw failure;
}

/**
 * An overflow may be another server's behind a gateway: it names a window smaller than what this model has answered. Then it passes
 * like any trouble of the provider. @returns undefined for an overflow that does not
 */
async function asPassing(step: StepContext, error: ModelError): Promise<ModelError | undefined> {
  if (error.class !== "overflow") return error;
  const { windowTokens } = error;
  if (windowTokens === undefined || error.isAsked || !hasRoom(step, windowTokens)) return undefined;
  const at = { sessionId: step.session.id, model: step.session.config.model };
  if (!(await hasLargerAnswer(step.deps.store.db, at, windowTokens))) return undefined;
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
  const said = deps.sanitizer.clean(error.message);
  const outcome = {
    kind: "overflow",
    by: "provider",
    said,
    context: sizeFacts(size),
    epoch: session.epoch,
  } as const;
  const { windowTokens } = error;
  if (windowTokens === undefined || windowTokens >= contextWindow || !hasRoom(step, windowTokens))
    return outcome;
  await setWindow(deps.store.db, session.id, { model, windowTokens, untilRunEnds: true });
  const message = `${said.replace(/\.?$/, ".")} This window is used until the run ends in place of ${contextWindow} tokens.`;
  const data = { class: error.class, message, retryInMs: null, final: false };
  await emitEvents(step, [{ type: "llm:error", step: input.step, attempt: scope.attempt, data }]);
  return { ...outcome, windowTokens };
}

function hasRoom({ session, measure }: StepContext, windowTokens: number): boolean {
  const { limitTokens } = budgetOf({ ...session.config, contextWindow: windowTokens }, measure.prefixTokens);
  return limitTokens - measure.prefixTokens * measure.ratio >= LEAST_ROOM_TOKENS;
}
