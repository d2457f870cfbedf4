/** What every activity needs of Temporal: who it works for, a heartbeat by timer, and why it was told to stop. */
import { Context } from "@temporalio/activity";
import { ApplicationFailure, CancelledFailure } from "@temporalio/common";
import type { AgentDeps } from "./deps.ts";
import { fatal, rethrowIfCancelled, retryable } from "./failures.ts";
import { databaseErrorOf } from "./store/database-error.ts";
import { SandboxLost } from "./sandbox/sandbox-lost.ts";

export interface ActivityScope {
  /** The session's id is the workflow's. */
  readonly sessionId: string;
  readonly runId: string;
  readonly attempt: number;
  /** Aborted by cancel, interrupt, pause, reset, deploy or a lost heartbeat: ask `stoppedByPerson`. */
  readonly signal: AbortSignal;
  /**
   * True where a person cancelled or interrupted: end it and keep what is there. False for a deploy, a pause, a reset
   * or a timeout, after which the activity is tried again.
   */
  stoppedByPerson(): boolean;
  /**
   * Rejects with the cancellation, for those that end because they were told to and are to be tried again. Usable in
   * a listener of `signal`, where Temporal's own `Context.current()` is not.
   */
  stopped(): Promise<never>;
  /** A note for the Web UI's pending activity, at most 200 characters. */
  note(text: string): void;
}

/**
 * Runs an activity's body. Heartbeats begin by timer, so that a quick activity sends none and a cancel reaches a slow
 * one within `heartbeatMs`. Errors leave it masked and without SQL parameters.
 */
export async function inScope<T>(
  deps: Pick<AgentDeps, "heartbeatMs" | "border">,
  body: (scope: ActivityScope) => Promise<T>,
): Promise<T> {
  const context = Context.current();
  const execution = context.info.workflowExecution;
  if (!execution) throw new Error("This activity belongs to a workflow.");
  let note: string | undefined;
  const timer = setInterval(() => context.heartbeat(note), deps.heartbeatMs);
  try {
    return await body({
      sessionId: execution.workflowId,
      runId: execution.runId,
      attempt: context.info.attempt,
      signal: context.cancellationSignal,
      stoppedByPerson: () => context.cancellationDetails?.cancelRequested === true,
      stopped: () => context.cancelled,
      note: (text) => {
        note = deps.border.clean(text).slice(0, 200);
      },
    });
  } catch (error) {
    throw outward(error, context.cancellationSignal, deps);
  } finally {
    clearInterval(timer);
  }
}

function outward(error: unknown, signal: AbortSignal, deps: Pick<AgentDeps, "border">): unknown {
  rethrowIfCancelled(error);
  if (error instanceof ApplicationFailure) return error;
  // Whatever an aborted call threw, it ended because it was told to; wrapped, it would count as a failure of its own.
  if (signal.aborted && signal.reason instanceof CancelledFailure) return signal.reason;
  if (error instanceof SandboxLost) {
    return retryable(
      "SandboxUnavailable",
      deps.border.clean(`${error.message} The step is tried again with a new box.`),
    );
  }
  const database = databaseErrorOf(error);
  if (database) {
    const message = `Postgres: ${deps.border.clean(database.message)}. Nothing of this attempt was kept`;
    return database.final
      ? fatal(
          "DatabaseRejected",
          `${message}, and trying again would not help: this is a fault of Longhaul's.`,
        )
      : retryable("DatabaseUnavailable", `${message}; it is tried again.`);
  }
  return new Error(deps.border.clean(error instanceof Error ? error.message : String(error)).slice(0, 1_000));
}
