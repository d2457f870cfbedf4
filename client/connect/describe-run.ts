/** A session's run as Temporal describes it. */
import { WorkflowNotFoundError, type WorkflowExecutionDescription } from "@temporalio/client";
import { oneLine } from "../console/format.ts";
import type { Temporal } from "./connection.ts";
import { withTimeout } from "../../worker/connect/with-timeout.ts";

const DESCRIBE_MS = 2_000;

export interface RunDescription {
  /** `RUNNING`, `COMPLETED` …, or `GONE` where Temporal has no such run. */
  readonly status: string;
  readonly runId: string | undefined;
  /** An activity that fails again and again, in words. */
  readonly trouble?: string;
}

/**
 * Undefined where Temporal cannot be asked. Never throws, never takes longer than 7 s.
 * @param run default: the session's newest
 */
export async function describeRun(
  temporal: Temporal,
  sessionId: string,
  run?: string,
): Promise<RunDescription | undefined> {
  try {
    const client = await temporal.client();
    const description = await withTimeout(client.workflow.getHandle(sessionId, run).describe(), DESCRIBE_MS);
    const trouble = troubleOf(description);
    return {
      status: description.status.name,
      runId: description.runId,
      ...(trouble === undefined ? {} : { trouble }),
    };
  } catch (error) {
    return error instanceof WorkflowNotFoundError ? { status: "GONE", runId: undefined } : undefined;
  }
}

/** @returns undefined where Temporal has no such run, or the run has ended */
export async function unlessGone<T>(request: () => Promise<T>): Promise<T | undefined> {
  try {
    return await request();
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return undefined;
    throw error;
  }
}

/** What is tried again says nothing in our own rows when it is they that cannot be written. */
function troubleOf({ raw }: WorkflowExecutionDescription): string | undefined {
  const failing = raw.pendingActivities?.find(
    (activity) => (activity.attempt ?? 1) > 1 && activity.lastFailure,
  );
  if (!failing?.lastFailure) return undefined;
  const { message, applicationFailureInfo } = failing.lastFailure;
  const type = applicationFailureInfo?.type ?? "failed";
  return `${failing.activityType?.name ?? "an activity"}, attempt ${failing.attempt}: ${oneLine(`${type}: ${message ?? ""}`, 300)}`;
}
