/** What a provider's failure means for the run: tried again, when, or the end. Pure. */
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
 * What may come again the next time, and is paid each time, gets one more try. Source: of malformed answers, requirement 3; of
 * answers past their deadline ours: a stall passes, and what is too long twice will be so again.
 */
export const ONE_MORE_TRY: ReadonlySet<ModelErrorClass> = new Set(["malformed", "too-long"]);

/** @param isLast of the classes with one more try: this was it */
export function failureOf(error: ModelError, isLast: boolean): ModelFailure {
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

/** A model that thought until its output was used up, and said nothing: asked again with the same room, it would again. */
export function outOfRoom(model: string, tokens: number): ApplicationFailure {
  return fatal(
    "EmptyAnswer",
    `${model} used up its ${tokens} tokens of output by thinking and said nothing. The conversation is kept. Raise models.${model}.maxOutput if the model can write more, or lower models.${model}.reasoning.effort, and start a session with that; or continue with another model (longhaul say ID "go on" --model …).`,
  );
}

/** Attempts after which a failure that may pass counts as one that stays, if another model is there to ask. Source: people who asked for it, three. */
const FALLBACK_ATTEMPTS = 3;

/** Whether another model takes the step over. @param attempt of the activity, from 1 */
export function mayStepIn({ final }: Pick<ModelFailure, "final">, attempt: number): boolean {
  return final || attempt >= FALLBACK_ATTEMPTS;
}

function again(error: ModelError): ModelFailure {
  const failure = retryable("ModelUnavailable", error.message, { delayMs: error.retryAfterMs, cause: error });
  return { failure, message: error.message, final: false, retryInMs: error.retryAfterMs ?? null };
}
