/** What a provider's failure means for the run: a retry, after how long, or the end. */
import type { ApplicationFailure } from "@temporalio/common";
import { fatal, retryable } from "../contract/failures.ts";
import type { ModelError, ModelErrorClass } from "../model/model.ts";

export interface ModelFailure {
  readonly failure: ApplicationFailure;
  readonly message: string;
  readonly final: boolean;
  /** Until the next attempt; null if there is none or Temporal's own back-off counts. */
  readonly retryInMs: number | null;
}

/**
 * Failures that may recur and cost money each time get one more try. Source: requirement 3 for malformed answers; ours for
 * answers past their deadline: a stall passes, but an answer that is too long twice will be too long again.
 */
export const ONE_MORE_TRY: ReadonlySet<ModelErrorClass> = new Set(["malformed", "too-long"]);

/** A shorter wait is the next attempt's of the same activity. Chosen: a timer of the run costs some events. */
const SHORT_MS = 10_000;

/** How long the run itself waits for the end of a limit, in ms; undefined if an attempt's delay is enough, or no end is known. */
export function limitMs({ class: kind, retryAfterMs }: ModelError): number | undefined {
  return kind === "rate-limit" && retryAfterMs !== undefined && retryAfterMs > SHORT_MS
    ? retryAfterMs
    : undefined;
}

/** @param isLast for the classes with one more try: whether this was it */
export function modelFailure(error: ModelError, isLast: boolean): ModelFailure {
  const end = (type: "ModelCredentials" | "ModelRejected" | "ModelTimeout", advice: string): ModelFailure => {
    const message = `${error.message} ${advice}`;
    return { failure: fatal(type, message, error), message, final: true, retryInMs: null };
  };
  switch (error.class) {
    case "credentials":
    case "quota":
      return end(
        "ModelCredentials",
        "The conversation is kept: correct the key and send a message to resume.",
      );
    case "rejected":
      return end(
        "ModelRejected",
        'The conversation is kept. If it is refused for something in it, continue with another model (longhaul say ID "go on" --model …), or go back to before that (longhaul retry ID --from-step N).',
      );
    case "not-found":
    case "overflow":
      return end("ModelRejected", "The conversation is kept.");
    case "malformed":
      if (isLast)
        return end(
          "ModelRejected",
          "The provider's answer could not be read twice in a row; the conversation is kept.",
        );
      return again(error);
    case "too-long":
      if (isLast)
        return end(
          "ModelTimeout",
          'It took that long twice in a row. The conversation up to this step is kept, the unfinished answers are not. Ask for less at a time, or use a faster model (longhaul say ID "go on" --model …); limits.modelTimeout sets the time of a new session.',
        );
      return again(error);
    case "rate-limit":
    case "unavailable":
    case "silent":
      return again(error);
  }
}

/** The failure of a model that used up its output by thinking and said nothing: with the same room, it would do so again. */
export function outOfRoom(model: string, tokens: number): ApplicationFailure {
  return fatal(
    "EmptyAnswer",
    `${model} used up its ${tokens} tokens of output by thinking and said nothing. The conversation is kept. Raise models.${model}.maxOutput if the model can write more, or lower models.${model}.reasoning.effort, and start a session with that; or continue with another model (longhaul say ID "go on" --model …).`,
  );
}

function again(error: ModelError): ModelFailure {
  const failure = retryable("ModelUnavailable", error.message, { delayMs: error.retryAfterMs, cause: error });
  return { failure, message: error.message, final: false, retryInMs: error.retryAfterMs ?? null };
}
