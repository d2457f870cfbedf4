/**
 * Failures that cross to the workflow and the Web UI: a stable type, a message of at most 1,000 characters that says
 * what happened, what was kept and what to do. Anything else is an ordinary retryable failure.
 */
import { ApplicationFailure, CancelledFailure } from "@temporalio/common";
import { shorten } from "./cut-text.ts";

export type FailureType =
  /** The provider refused the credentials. */
  | "ModelCredentials"
  /** The provider refused the request permanently (400, 404, 422). */
  | "ModelRejected"
  | "ModelUnavailable"
  /** What may be asked of the model is used up for now: nothing was asked. */
  | "ModelThrottled"
  /** An answer took longer than its deadline, twice. */
  | "ModelTimeout"
  | "ContextOverflow"
  | "SandboxRefused"
  | "SandboxUnavailable"
  /** The sandbox's firewall could not be set up, and the configuration requires it. */
  | "SandboxUnguarded"
  /** A command of `sandbox.setup` failed. */
  | "SetupFailed"
  | "WorkspaceLost"
  /** Another person's container in which the session is to work is missing or unusable. */
  | "ContainerUnavailable"
  | "ImageMissing"
  /** The session's repository cannot be read: no access, no such repository or reference, or no answer. */
  | "RepositoryUnavailable"
  /** A server that the session requires does not answer. */
  | "McpUnavailable"
  | "DatabaseUnavailable"
  /** Our own statement was refused: a fault in the code. */
  | "DatabaseRejected"
  /** The database's tables are newer than this worker, which takes no more work: a newer worker must continue. */
  | "WorkerOutdated"
  /** A newer run has taken the session over: this attempt's writes are refused. */
  | "Superseded"
  /** Another attempt of this run holds the tool call. */
  | "CallTaken"
  /** Several workers in a row were lost while they ran the same activity, so no other gets it. */
  | "PoisonedSession"
  | "BadConfiguration"
  /** The session asks for more than the worker's operator allows. */
  | "PolicyRefused"
  /** A tool call that the step's stored answer does not have. */
  | "NoSuchCall"
  | "Stuck"
  | "EmptyAnswer"
  /** The answer broke off twice in a row. */
  | "UnfinishedAnswer"
  /** The last answer is not JSON by the session's schema, also after one more try. */
  | "OutputMismatch"
  | "ContentFilter"
  /** An update with a message that cannot be queued. */
  | "GuidanceRefused"
  /** An update with an answer that no open question takes. */
  | "AnswerRefused"
  /** A payload over 64 KB: a fault in the code. */
  | "PayloadTooLarge"
  /** What Temporal has of the run is encrypted with a key that this process lacks, or cannot be read with it. */
  | "CodecKeyMissing"
  | "CodecRefused"
  /** No failure: the sandbox is kept for a while before it is parked. */
  | "NotYetDue"
  /** Reported for an activity whose worker died, so that it is retried at once. */
  | "WorkerLost"
  /** The outcome of a cancelled run, of a run that ended without closing its session, and of any other error. */
  | "Cancelled"
  | "RunEnded"
  | "Unexpected";

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

/** A newer run has claimed the session, and this one may write nothing. @param kept what that means here, as a clause */
export function superseded(kept: string): ApplicationFailure {
  return fatal("Superseded", `A newer run has taken over this session; ${kept}.`);
}

/** Is tried again, after `delayMs` if that is given. */
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
