/** What the engine's answers mean. Its 304, 404 and 409 are states, not errors. */
import { ApplicationFailure } from "@temporalio/common";
import { retryable } from "../../contract/failures.ts";
import { reasonOf } from "../../contract/reason-of.ts";

/** HTTP status of the engine's answer; undefined if it did not answer. */
export function statusOf(error: unknown): number | undefined {
  return error instanceof Error && "statusCode" in error && typeof error.statusCode === "number"
    ? error.statusCode
    : undefined;
}

/** Runs `call`; gives undefined if the engine answers one of `states`. @throws SandboxUnavailable (retryable) */
export async function unless<T>(states: readonly number[], call: () => Promise<T>): Promise<T | undefined> {
  try {
    return await call();
  } catch (error) {
    const status = statusOf(error);
    if (status !== undefined && states.includes(status)) return undefined;
    if (error instanceof ApplicationFailure) throw error;
    throw unavailable(error);
  }
}

/** The engine cannot be reached or cannot answer now: worth another attempt. */
export function unavailable(error: unknown): Error {
  const status = statusOf(error);
  const message = reasonOf(error);
  return retryable(
    "SandboxUnavailable",
    status === undefined
      ? `the Docker engine does not answer (${message}); files and sessions are kept; start it, and the task continues by itself`
      : `the Docker engine refused: ${message}; the request will be retried`,
    { cause: error },
  );
}
