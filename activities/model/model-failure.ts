/** What a provider's failure means for the run: tried again, when, or the end. Pure. */
import type { ApplicationFailure } from "@temporalio/common";
import { fatal, retryable } from "../failures.ts";
import type { ModelError } from "./model.ts";

export interface ModelFailure {
  readonly failure: ApplicationFailure;
  readonly message: string;
  readonly final: boolean;
  /** Until the next attempt; null where there is none or Temporal's own back-off counts. */
  readonly retryInMs: number | null;
}

/** Malformed answers get one more try. Source: requirement 3. */
const MALFORMED_ATTEMPTS = 2;

/** @param attempt of the activity, from 1 */
export function failureOf(error: ModelError, attempt: number): ModelFailure {
  const end = (type: "ModelCredentials" | "ModelRejected", advice: string): ModelFailure => {
    const message = `${error.message} ${advice}`;
    return { failure: fatal(type, message, error), message, final: true, retryInMs: null };
  };
  switch (error.class) {
    case "credentials":
      return end(
        "ModelCredentials",
        "The conversation is kept: put the key right and say something to resume.",
      );
    case "rejected":
    case "not-found":
    case "overflow":
      return end("ModelRejected", "The conversation is kept.");
    case "malformed":
      if (attempt >= MALFORMED_ATTEMPTS)
        return end(
          "ModelRejected",
          "The provider's answer could not be read twice in a row; the conversation is kept.",
        );
      return again(error);
    case "rate-limit":
    case "unavailable":
    case "silent":
      return again(error);
  }
}

function again(error: ModelError): ModelFailure {
  const failure = retryable("ModelUnavailable", error.message, { delayMs: error.retryAfterMs, cause: error });
  return { failure, message: error.message, final: false, retryInMs: error.retryAfterMs ?? null };
}
