/** What Temporal says of a run that it may not know. */
import { WorkflowNotFoundError } from "@temporalio/client";
import { isNamespaceMissing } from "./namespace-missing.ts";

/** @returns undefined for a run that never began, is another namespace's, or whose retention is over */
export async function whereFound<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return undefined;
    throw error;
  }
}

/** gRPC's status code. */
const NOT_FOUND = 5;

/** The same for a direct call of the service. A namespace that is missing says nothing about its runs. */
export function isNotFound(error: unknown): boolean {
  return (
    typeof error === "object" &&
    error !== null &&
    "code" in error &&
    error.code === NOT_FOUND &&
    !isNamespaceMissing(error)
  );
}
