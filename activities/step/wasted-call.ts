/** Failed requests: their usage rows, and what they mean for the next attempt. */
import { answerCostUsd, costUsd } from "../config/cost.ts";
import { cutChars } from "../text/cut.ts";
import type { ModelAnswer, ModelErrorClass } from "../model/model.ts";
import { hasEarlierCall, type ModelCallRow, recordCall } from "../store/model-calls.ts";
import { estimateText } from "../text/tokens.ts";
import { reportCall } from "../runtime/telemetry/report.ts";
import { ONE_MORE_TRY } from "./model-failure.ts";
import type { StepContext } from "./step-context.ts";
import { billOf } from "./store-answer.ts";

/** Failures after which a provider bills its input and output without reporting the amount. Source: ours, by what they mean. */
const BILLED: ReadonlySet<string> = new Set<ModelErrorClass>(["silent", "too-long", "malformed"]);

/**
 * The estimated cost in USD of a request without reported usage: by our token count, with the cached share of the last request
 * that had usage. Null if the price is not known.
 * @param said the part of the answer that arrived
 */
export function estimatedCostUsd({ session, size, rows }: StepContext, said: string): number | null {
  const { price, tier } = session.config;
  const last = rows.findLast((row) => row.usage !== undefined)?.usage;
  const share = last === undefined || !(last.input > 0) ? 0 : (last.cached ?? 0) / last.input;
  const input = size.next.tokens;
  return costUsd(price, { input, cached: Math.round(share * input), output: estimateText(said) }, { tier });
}

/**
 * Records a request that was, or may have been, billed for nothing. Without reported usage its cost is an estimate; such a row has
 * a cost and no tokens.
 * @param said the part of the answer that arrived before the failure
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

/** Whether an earlier attempt at this step failed in the same way; queried only if that decides anything. */
export function failedAlike(step: StepContext, kind: ModelErrorClass): boolean | Promise<boolean> {
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
