/** Requests that came to nothing: their bill, and what they tell of the next attempt. */
import { costUsd } from "../config/cost.ts";
import { cutChars } from "../contract/cut-text.ts";
import type { ModelAnswer, ModelErrorClass } from "../model/model.ts";
import { hasEarlierCall, type ModelCallRow, recordCall } from "../store/model-calls.ts";
import { logCall } from "./log-call.ts";
import { ONE_MORE_TRY } from "./model-failure.ts";
import type { StepContext } from "./step-context.ts";
import { billOf } from "./store-answer.ts";

/** A request that was, or may have been, billed for nothing. */
export async function recordWasted(
  step: StepContext,
  error: string,
  { answer, finish }: { readonly answer?: ModelAnswer; readonly finish: string },
): Promise<void> {
  const { sanitizer, store } = step.deps;
  const bill: ModelCallRow = {
    ...billOf(step),
    status: "wasted",
    error: cutChars(sanitizer.clean(error), 1_000),
    finish,
    usage: answer?.usage,
    costUsd: answer?.costUsd ?? costUsd(step.session.config.price, answer?.usage, step.session.config),
  };
  logCall(bill);
  await recordCall(store.db, bill);
}

/** Whether an earlier attempt at this step failed as this one does; asked only where that decides. */
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
