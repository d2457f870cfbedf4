/** How a run ends, and which part of that crosses to Temporal. */
import {
  ActivityFailure,
  ApplicationFailure,
  CancelledFailure,
  ContinueAsNew,
  isCancellation,
  rootCause,
} from "@temporalio/workflow";
import type { FailureType } from "../activities/contract/failures.ts";
import type { CloseSessionInput } from "../activities/contract/activities.ts";
import type { VerifiedWork } from "../activities/contract/verify.ts";
import type { Limit } from "../activities/contract/limits.ts";

export interface Outcome {
  readonly status: CloseSessionInput["status"];
  /** For `max_steps`: which limit was reached. */
  readonly limit?: Limit;
  /** For a budget: which, and until when. */
  readonly limitReason?: string;
  readonly error?: { readonly type: string; readonly message: string };
  /** What commands said of the work, and of which files; absent if nothing was verified. */
  readonly verified?: Pick<VerifiedWork, "outcome" | "tree" | "reason">;
  /** The failure as it came, for the Web UI's chain of causes. */
  readonly cause?: Error;
}

export function failed(type: FailureType, message: string): Outcome {
  return { status: "failed", error: { type, message } };
}

/**
 * True if an activity ended because a person stopped it, even if its last attempt failed: Temporal does not
 * retry an activity that must end, so that failure is reported instead of the cancellation.
 */
export function wasStopped(error: unknown): boolean {
  return (
    isCancellation(error) || (error instanceof ActivityFailure && error.retryState === "CANCEL_REQUESTED")
  );
}

/** What an error that ended the loop means. Continue-as-new is not an error: it passes through. */
export function toOutcome(error: unknown): Outcome {
  if (error instanceof ContinueAsNew) throw error;
  if (wasStopped(error))
    return {
      status: "cancelled",
      error: { type: "Cancelled", message: "The run was cancelled. What was done and said is kept." },
    };
  const cause = error instanceof ActivityFailure ? error.cause : error;
  const type = cause instanceof ApplicationFailure && cause.type ? cause.type : "Unexpected";
  return {
    status: "failed",
    error: { type, message: messageOf(error) },
    cause: error instanceof Error ? error : undefined,
  };
}

/** The text of a typed failure, which says what happened, what was kept and what to do. Its causes are left to Temporal's chain. */
export function messageOf(error: unknown): string {
  const cause = error instanceof ActivityFailure ? error.cause : error;
  if (cause instanceof ApplicationFailure && cause.type && cause.message !== "") return cause.message;
  return rootCause(error) ?? String(error);
}

/** The error that closes the run: Cancelled if it was cancelled, else a typed failure that Temporal does not retry. */
export function closingError({ status, error, cause }: Outcome): Error {
  if (status === "cancelled") return new CancelledFailure(error?.message ?? "Cancelled");
  return ApplicationFailure.create({
    type: error?.type ?? "Unexpected",
    message: error?.message ?? "The run failed.",
    nonRetryable: true,
    cause,
  });
}
