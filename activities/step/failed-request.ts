/** What follows a request without an answer: a stop, another attempt, another model, a compaction, or the end. */
import type { StepOutcome } from "../contract/activities.ts";
import { sizeFacts } from "../context/context-size.ts";
import { ModelError } from "../model/model.ts";
import { failureOf, mayStepIn } from "./model-failure.ts";
import { keepInterrupted } from "./store-answer.ts";
import type { StepContext } from "./step-context.ts";
import { emitEvents } from "./step-events.ts";
import { setWindow } from "../store/session-settings.ts";
import { estimatedCostUsd, failedAlike, recordWasted } from "./wasted-call.ts";

/** A shorter wait is the next attempt's of the same activity. Source: ours; a timer of the run costs some events. */
const SHORT_MS = 10_000;
/** A fallback model does not let people wait longer. Source: ours, the longest pause between two attempts. */
const LONG_MS = 120_000;

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
  if (error.class === "overflow") return overflowed(step, error);
  const { failure, message, retryInMs, final } = failureOf(error, isLast);
  const data = { class: error.class, message, retryInMs, final };
  await emitEvents(step, [{ type: "llm:error", step: input.step, attempt: scope.attempt, data }]);
  const isLimit = error.class === "rate-limit" && retryInMs !== null && retryInMs > SHORT_MS;
  if (isLimit && input.hasFallback !== true && input.waitsForLimits === true)
    return { kind: "limited", waitMs: retryInMs, epoch };
  const isLong = isLimit && retryInMs > LONG_MS;
  if (input.hasFallback === true && isLong) return { kind: "unavailable", reason: error.class, epoch };
  if (input.hasFallback === true && mayStepIn({ final }, scope.attempt - scope.waits))
    return { kind: "unavailable", reason: error.class, epoch };
  throw failure;
}

/** A window that the provider names is the session's from now on: compaction makes the request fit into it. */
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
  if (windowTokens === undefined || windowTokens >= contextWindow) return outcome;
  await setWindow(deps.store.db, session.id, { model, windowTokens });
  const message = `${said.replace(/\.?$/, ".")} This window is used from now on in place of ${contextWindow} tokens.`;
  const data = { class: error.class, message, retryInMs: null, final: false };
  await emitEvents(step, [{ type: "llm:error", step: input.step, attempt: scope.attempt, data }]);
  return { ...outcome, windowTokens };
}
