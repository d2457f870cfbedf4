/** Logs each request to a model as one line of the worker's log, with its estimated and its billed tokens. */
import { log } from "@temporalio/activity";
import { estimateError } from "../../contract/request-size.ts";
import type { ModelCallRow } from "../../store/model-calls.ts";

/** Writes the line. It has no text of the request or the answer. */
export function logCall(call: ModelCallRow): void {
  log.info("model call", callFacts(call));
}

/** The line's fields; tokens, ms, and the estimate's error in percent of the bill. */
function callFacts(call: ModelCallRow): Record<string, string | number | boolean> {
  const { usage, firstTokenMs, durationMs, finish } = call;
  const error = estimateError(call.estimatedInput, usage?.input);
  return {
    session: call.sessionId,
    step: call.step,
    attempt: call.attempt,
    purpose: call.purpose,
    model: call.model,
    status: call.status,
    ...(finish === undefined ? {} : { finish }),
    estimatedInput: call.estimatedInput,
    estimatePure: call.estimatePure,
    ...(usage === undefined
      ? { billed: false }
      : {
          input: usage.input,
          cached: usage.cached,
          output: usage.output,
          reasoning: usage.reasoning,
        }),
    ...(error === undefined ? {} : { errorPercent: Math.round(1_000 * error) / 10 }),
    ...(firstTokenMs === undefined ? {} : { firstTokenMs: Math.round(firstTokenMs) }),
    ...(durationMs === undefined ? {} : { durationMs: Math.round(durationMs) }),
  };
}
