/** Failed requests: their bill, and what they say about the next attempt. */
import { answerCostUsd, costUsd } from "../config/cost.ts";
import { cutChars } from "../contract/cut-text.ts";
import type { ModelAnswer, ModelErrorClass } from "../model/model.ts";
import { hasEarlierCall, type ModelCallRow, recordCall } from "../store/model-calls.ts";
import { estimateText } from "../contract/tokens.ts";
import { reportCall } from "../runtime/telemetry/report.ts";
import { ONE_MORE_TRY } from "./model-failure.ts";
import type { StepContext } from "./step-context.ts";
import { billOf } from "./store-answer.ts";

/** Failures after which a provider bills what it read and wrote without saying how much. Source: ours, by what they mean. */
const BILLED: ReadonlySet<string> = new Set<ModelErrorClass>(["silent", "too-long", "malformed"]);

/**
 * The estimated cost of a request without a bill in USD: by our count of it, as much of it from the cache as of the
 * last one that was billed. Null if the price is not known.
 * @param said what arrived of the answer
 */
export function estimatedCostUsd({ session, size, rows }: StepContext, said: string): number | null {
  const { price, tier } = session.config;
  const last = rows.findLast((row) => row.usage !== undefined)?.usage;
  const share = last === undefined || !(last.input > 0) ? 0 : (last.cached ?? 0) / last.input;
  const input = size.next.tokens;
  return costUsd(price, { input, cached: Math.round(share * input), output: estimateText(said) }, { tier });
}

/**
 * A request that was, or may have been, billed for nothing. Without a bill its cost is an estimate, which a row with a cost and
 * no tokens means.
 * @param said what arrived of the answer before it failed
 */
export async function recordWasted(
  step: StepContext,
  error: string,
  {
    answer,
    finish,
    said = "",
  }: { readonly answer?: ModelAnswer; readonly finish: string; readonly said?: string },
): Promise<void> {
  const { sanitizer, store } = step.deps;
  const unbilled = said !== "" || BILLED.has(finish) ? estimatedCostUsd(step, said) : null;
  const bill: ModelCallRow = {
    ...billOf(step),
    status: "wasted",
    error: cutChars(sanitizer.clean(error), 1_000),
    finish,
    usage: answer?.usage,
    costUsd: answer === undefined ? unbilled : answerCostUsd(step.session.config, answer),
  };
  reportCall(step, bill, step.session.config);
  await recordCall(store.db, bill);
}

/** Whether an earlier attempt at this step failed as this one does; asked only if that decides. */
export function failedAlike(step: StepContext, kind: ModelErrorClass): boolean | Promise<boolean> {
  if (!ONE_MORE_TRY.has(kind)) return false;
  return hasEarlierCall(step.deps.store.db, { ...placeOf(step), attempt: step.scope.attempt }, kind);
}

/** Whether this step was asked before, and its answer was used up by thinking. */
export function thoughtInVain(step: StepContext): boolean | Promise<boolean> {
  return step.input.again === true && hasEarlierCall(step.deps.store.db, placeOf(step), "length");
}

function placeOf({ session, input }: StepContext) {
  return { sessionId: session.id, epoch: session.epoch, step: input.step, model: session.config.model };
}
