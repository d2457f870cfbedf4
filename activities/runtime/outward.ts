/** An activity's error as it may leave the activity: typed, cleaned, and retried only if it passes by itself. */
import { log } from "@temporalio/activity";
import { ApplicationFailure, CancelledFailure } from "@temporalio/common";
import type { AgentDeps } from "./deps.ts";
import { fatal, rethrowIfCancelled, retryable } from "../contract/failures.ts";
import { passesUnnamed, innermostReason } from "../contract/errors.ts";
import { databaseErrorOf } from "../store/database-error.ts";
import { hasNewerTables } from "../store/schema-version.ts";
import { SandboxLost } from "../sandbox/sandbox.ts";

/** The same failure, marked as not retryable. A cancellation is returned unchanged. */
export function ended(failure: unknown): unknown {
  if (failure instanceof CancelledFailure || !(failure instanceof Error)) return failure;
  if (failure instanceof ApplicationFailure && failure.nonRetryable === true) return failure;
  const type = (failure instanceof ApplicationFailure ? failure.type : undefined) ?? "Unexpected";
  return ApplicationFailure.create({ type, message: failure.message, nonRetryable: true, cause: failure });
}

/** A failure without its message, which stays in the worker's log. A cancellation is returned unchanged. */
export function byCode(failure: unknown): unknown {
  if (failure instanceof CancelledFailure || !(failure instanceof Error)) return failure;
  const known = failure instanceof ApplicationFailure ? failure : undefined;
  const type = known?.type ?? "Unexpected";
  log.warn("failed", { type, reason: failure.message });
  const kept = ApplicationFailure.create({
    type,
    message: `${type}: see the worker's log.`,
    nonRetryable: known?.nonRetryable ?? false,
    ...(known?.nextRetryDelay == null ? {} : { nextRetryDelay: known.nextRetryDelay }),
  });
  // The stack would begin with the original failure's message.
  kept.stack = "";
  return kept;
}

/** A failure as it may be stored in the history: its message, its stack and its causes are cleaned. */
function cleaned(
  failure: ApplicationFailure,
  { sanitizer }: Pick<AgentDeps, "sanitizer">,
): ApplicationFailure {
  for (let error: unknown = failure; error instanceof Error; error = error.cause) {
    error.message = sanitizer.clean(error.message);
    if (error.stack !== undefined) error.stack = sanitizer.clean(error.stack);
  }
  return failure;
}

/**
 * A cancellation is returned unchanged. A failure that has a type keeps it; what is wrong with the sandbox or the database gets theirs. Any
 * other error is retried if it passes by itself, and else told at once in its own words.
 */
export async function outward(
  error: unknown,
  signal: AbortSignal,
  deps: Pick<AgentDeps, "sanitizer" | "store" | "outdated">,
): Promise<unknown> {
  rethrowIfCancelled(error);
  if (error instanceof ApplicationFailure) return cleaned(error, deps);
  // Whatever an aborted call threw, it ended because of the abort; wrapped, it would count as a failure of its own.
  if (signal.aborted && signal.reason instanceof CancelledFailure) return signal.reason;
  if (error instanceof SandboxLost) {
    return retryable(
      "SandboxUnavailable",
      deps.sanitizer.clean(`${error.message} The step is tried again with a new sandbox.`),
    );
  }
  const database = databaseErrorOf(error);
  if (database?.unknownToSchema && (await hasNewerTables(deps.store.db))) {
    deps.outdated?.();
    return retryable(
      "WorkerOutdated",
      `This worker is older than the database's tables (${deps.sanitizer.clean(database.message)}), and takes no more work. Nothing of this attempt was kept; it waits for a newer worker. Replace the old ones.`,
    );
  }
  if (database) {
    const message = `Postgres: ${deps.sanitizer.clean(database.message)}. Nothing of this attempt was kept`;
    return database.final
      ? fatal("DatabaseRejected", `${message}, and trying again would not help.`)
      : retryable("DatabaseUnavailable", `${message}; it is tried again.`);
  }
  const words = deps.sanitizer.clean(namedReason(error));
  return passesUnnamed(error)
    ? retryable("Unexpected", `${words}. It is tried again.`)
    : fatal(
        "Unexpected",
        `${words}. It was not tried again, because the next attempt would do the same. What was done before is kept: send a message to continue.`,
      );
}

/** With the name of an error's kind, which often says more than its words. */
function namedReason(error: unknown): string {
  const reason = innermostReason(error);
  const name = error instanceof Error ? error.name : "Error";
  return name === "Error" || reason.startsWith(name) ? reason : `${name}: ${reason}`;
}
