/**
 * Failures that reach the workflow and the Web UI: a stable type, and a message of at most 1,000 characters that says
 * what happened, what was kept and what to do. Any other error becomes one as it leaves its activity (runtime/activity-scope.ts).
 */
import { ApplicationFailure, CancelledFailure } from "@temporalio/common";
import { shorten } from "../text/cut.ts";

export type FailureType =
  /** The provider refused the credentials. */
  | "ModelCredentials"
  /** The provider refused the request permanently (400, 404, 422). */
  | "ModelRejected"
  | "ModelUnavailable"
  /** The model's rate limit is used up for now: nothing was sent. */
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
  /** A service of `sandbox.services` did not become healthy before the first step. */
  | "ServiceFailed"
  | "WorkspaceLost"
  /** The object store (`LONGHAUL_STORE`) does not answer, or refuses. */
  | "StoreUnavailable"
  /** Another person's container in which the session is to work is missing or unusable. */
  | "ContainerUnavailable"
  | "ImageMissing"
  /** A key that the session names has no value here, or its certificates cannot be made. */
  | "KeyMissing"
  /** The session's repository cannot be read: no access, no such repository or reference, or no answer. */
  | "RepositoryUnavailable"
  /** An MCP server that the session requires does not answer. */
  | "McpUnavailable"
  | "DatabaseUnavailable"
  /** One of our own SQL statements was refused: a bug. */
  | "DatabaseRejected"
  /** The database's tables are newer than this worker, which takes no more work: a newer worker must continue. */
  | "WorkerOutdated"
  /** A newer run has claimed the session: this attempt's writes are refused. */
  | "Superseded"
  /** Another attempt of this run holds the tool call. */
  | "CallTaken"
  /** Several workers in a row were lost while running the same activity, so no other worker gets it. */
  | "PoisonedSession"
  | "BadConfiguration"
  /** A start with an empty input, under an id that no session has: nothing was started. */
  | "NothingToStart"
  /** The session asks for more than the worker's operator allows. */
  | "PolicyRefused"
  /** The id of a session to be started belongs to another one. */
  | "IdTaken"
  /** A tool call that is not in the step's stored answer. */
  | "NoSuchCall"
  /** A run has done what the database does not have: it was restored from an older copy. */
  | "RecordMissing"
  | "Stuck"
  | "EmptyAnswer"
  /** The model wrote a call as text, twice: its server does not recognise the model's calls. */
  | "CallInText"
  /** The answer broke off twice in a row. */
  | "UnfinishedAnswer"
  /** The last answer is not JSON matching the session's schema, even after one more try. */
  | "OutputMismatch"
  | "ContentFilter"
  /** An update with a message that cannot be queued. */
  | "GuidanceRefused"
  /** An update with an answer that no open question accepts. */
  | "AnswerRefused"
  /** A payload over 64 KB: a bug. */
  | "PayloadTooLarge"
  /** Temporal's data of the run is encrypted with a key that this process lacks, or that does not decrypt it. */
  | "CodecKeyMissing"
  | "CodecRefused"
  /** Not an error: the sandbox is kept for a while before it is parked. */
  | "NotYetDue"
  /** Reported for an activity whose worker died, so that the activity is retried at once. */
  | "WorkerLost"
  /** The outcome of a cancelled run, of a run that ended without closing its session, and of any other error. */
  | "Cancelled"
  | "RunEnded"
  | "Unexpected";

const MAX_MESSAGE_CHARS = 1_000;

/** A failure that ends the run: retrying would change nothing. */
export function fatal(type: FailureType, message: string, cause?: unknown): ApplicationFailure {
  return ApplicationFailure.create({
    type,
    message: shorten(message, MAX_MESSAGE_CHARS),
    nonRetryable: true,
    ...causeOf(cause),
  });
}

/** A newer run has claimed the session, so this one may write nothing. @param consequence what that means here, as a clause */
export function superseded(consequence: string): ApplicationFailure {
  return fatal("Superseded", `A newer run has claimed this session; ${consequence}.`);
}

/** Rows that this attempt had read are not there any more: the database was restored from an older copy. The next attempt finds it out. */
export function rowsGone(consequence: string): ApplicationFailure {
  return retryable(
    "RecordMissing",
    `Postgres no longer has what this attempt began with: it was restored from an older copy; ${consequence}. It is tried again.`,
  );
}

/** A failure that is retried, after `delayMs` if given. */
export function retryable(
  type: FailureType,
  message: string,
  options: { delayMs?: number | undefined; cause?: unknown } = {},
): ApplicationFailure {
  return ApplicationFailure.create({
    type,
    message: shorten(message, MAX_MESSAGE_CHARS),
    nonRetryable: false,
    nextRetryDelay: options.delayMs,
    ...causeOf(options.cause),
  });
}

// A cause may hold SQL parameters or headers, so only its own message is passed on, never its fields.
function causeOf(cause: unknown): { cause?: Error } {
  return cause instanceof Error ? { cause: new Error(shorten(cause.message, MAX_MESSAGE_CHARS)) } : {};
}

/** Call this first in every catch: a cancellation must leave an activity unchanged, or it would be retried. */
export function rethrowIfCancelled(error: unknown): void {
  if (error instanceof CancelledFailure) throw error;
}
