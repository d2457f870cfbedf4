/**
 * Failures that cross to the workflow and the Web UI: a stable type, a message of at most 1,000 characters that says
 * what happened, what was kept and what to do. Anything else is an ordinary retryable failure.
 */
import { ApplicationFailure, CancelledFailure } from "@temporalio/common";
import { shorten } from "./cut-text.ts";

export type FailureType =
  /** The provider refused the credentials. */
  | "ModelCredentials"
  /** The provider refused the request for good (400, 404, 422). */
  | "ModelRejected"
  | "ModelUnavailable"
  /** An answer took longer than its deadline, twice. */
  | "ModelTimeout"
  | "ContextOverflow"
  | "SandboxRefused"
  | "SandboxUnavailable"
  /** The walls round a sandbox's network could not be built, and the configuration requires them. */
  | "SandboxUnguarded"
  | "WorkspaceLost"
  | "ImageMissing"
  | "DatabaseUnavailable"
  /** A statement of ours was refused: a fault in the code. */
  | "DatabaseRejected"
  /** The database's tables are newer than the worker that tried: a newer worker takes it over. */
  | "WorkerOutdated"
  /** A newer run has taken the session over: this attempt's writes are refused. */
  | "Superseded"
  /** Another attempt of this run holds the tool call. */
  | "CallTaken"
  /** One worker after the other was lost while it ran the same activity: it is not handed on. */
  | "PoisonedSession"
  | "BadConfiguration"
  | "Stuck";

const MAX_MESSAGE_CHARS = 1_000;

/** Ends the run: trying again would change nothing. */
export function fatal(type: FailureType, message: string, cause?: unknown): ApplicationFailure {
  return ApplicationFailure.create({
    type,
    message: shorten(message, MAX_MESSAGE_CHARS),
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
    message: shorten(message, MAX_MESSAGE_CHARS),
    nonRetryable: false,
    ...(options.delayMs === undefined ? {} : { nextRetryDelay: options.delayMs }),
    ...causeOf(options.cause),
  });
}

// A cause's message may hold SQL parameters or headers, so only its own message goes along, never its fields.
function causeOf(cause: unknown): { cause?: Error } {
  return cause instanceof Error ? { cause: new Error(shorten(cause.message, MAX_MESSAGE_CHARS)) } : {};
}

/** First thing in every catch: a cancellation leaves an activity as it is, or it would be retried. */
export function rethrowIfCancelled(error: unknown): void {
  if (error instanceof CancelledFailure) throw error;
}
