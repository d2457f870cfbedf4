/**
 * Failures that cross to the workflow and the Web UI: a stable type, a message of at most 1,000 characters that says
 * what happened, what was kept and what to do. Anything else is an ordinary retryable failure.
 */
import { ApplicationFailure, CancelledFailure } from "@temporalio/common";

export type FailureType =
  /** The provider refused the credentials. */
  | "ModelCredentials"
  /** The provider refused the request for good (400, 404, 422). */
  | "ModelRejected"
  | "ModelUnavailable"
  | "ContextOverflow"
  | "SandboxRefused"
  | "SandboxUnavailable"
  | "WorkspaceLost"
  | "ImageMissing"
  | "DatabaseUnavailable"
  /** A statement of ours was refused: a fault in the code. */
  | "DatabaseRejected"
  /** A newer run has taken the session over: this attempt's writes are refused. */
  | "Superseded"
  | "BadConfiguration"
  | "Stuck";

const MAX_MESSAGE_CHARS = 1_000;

function bounded(message: string): string {
  return message.length <= MAX_MESSAGE_CHARS
    ? message
    : `${message.slice(0, MAX_MESSAGE_CHARS - 1).toWellFormed()}…`;
}

/** Ends the run: trying again would change nothing. */
export function fatal(type: FailureType, message: string, cause?: unknown): ApplicationFailure {
  return ApplicationFailure.create({
    type,
    message: bounded(message),
    nonRetryable: true,
    ...causeOf(cause),
  });
}

/** Is tried again, after `delayMs` where that is given. */
export function retryable(
  type: FailureType,
  message: string,
  options: { delayMs?: number | undefined; cause?: unknown } = {},
): ApplicationFailure {
  return ApplicationFailure.create({
    type,
    message: bounded(message),
    nonRetryable: false,
    ...(options.delayMs === undefined ? {} : { nextRetryDelay: options.delayMs }),
    ...causeOf(options.cause),
  });
}

// A cause's message may hold SQL parameters or headers, so only its own message goes along, never its fields.
function causeOf(cause: unknown): { cause?: Error } {
  return cause instanceof Error ? { cause: new Error(bounded(cause.message)) } : {};
}

/** First thing in every catch: a cancellation leaves an activity as it is, or it would be retried. */
export function rethrowIfCancelled(error: unknown): void {
  if (error instanceof CancelledFailure) throw error;
}
