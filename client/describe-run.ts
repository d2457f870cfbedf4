/** Temporal's word on a session's run. */
import { WorkflowNotFoundError } from "@temporalio/client";
import { within, type Temporal } from "./connection.ts";

const DESCRIBE_MS = 2_000;

export interface RunDescription {
  /** `RUNNING`, `COMPLETED` …, or `GONE` where Temporal has no such run. */
  readonly status: string;
  readonly runId: string | undefined;
}

/** Undefined where Temporal cannot be asked. Never throws, never takes longer than 7 s. */
export async function describeRun(
  temporal: Temporal,
  sessionId: string,
): Promise<RunDescription | undefined> {
  try {
    const client = await temporal.client();
    const description = await within(client.workflow.getHandle(sessionId).describe(), DESCRIBE_MS);
    return { status: description.status.name, runId: description.runId };
  } catch (error) {
    return error instanceof WorkflowNotFoundError ? { status: "GONE", runId: undefined } : undefined;
  }
}
