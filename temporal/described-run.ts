/** One run as Temporal describes it, without decoding what it carries: it may be encrypted with keys that we lack. */
import type { Client, WorkflowExecutionDescription } from "@temporalio/client";
import { isNotFound } from "./where-found.ts";

export interface DescribedRun {
  readonly runId: string;
  readonly status: RunStatus;
  readonly startedMs: number;
  readonly raw: WorkflowExecutionDescription["raw"];
}

/** In the order of temporal.api.enums.v1.WorkflowExecutionStatus. */
const STATUSES = [
  "UNSPECIFIED",
  "RUNNING",
  "COMPLETED",
  "FAILED",
  "CANCELLED",
  "TERMINATED",
  "CONTINUED_AS_NEW",
  "TIMED_OUT",
  "PAUSED",
] as const;

export type RunStatus = (typeof STATUSES)[number];

/**
 * @param runId default: the newest
 * @returns undefined for a run that never began, is another namespace's, or whose retention is over
 */
export async function describedRun(
  { workflowService, options: { namespace } }: Client,
  workflowId: string,
  runId?: string,
): Promise<DescribedRun | undefined> {
  try {
    const raw = await workflowService.describeWorkflowExecution({
      namespace,
      execution: { workflowId, ...(runId === undefined ? {} : { runId }) },
    });
    const { execution, status, startTime } = raw.workflowExecutionInfo ?? {};
    return {
      runId: execution?.runId ?? "",
      status: statusName(status),
      startedMs: millisecondsOf(startTime),
      raw,
    };
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

export function statusName(code: number | null | undefined): RunStatus {
  return STATUSES[code ?? 0] ?? "UNSPECIFIED";
}

type Timestamp = NonNullable<
  NonNullable<WorkflowExecutionDescription["raw"]["workflowExecutionInfo"]>["startTime"]
>;

/** @returns 0 if there is none */
export function millisecondsOf(time: Timestamp | null | undefined): number {
  return Number(time?.seconds ?? 0) * 1_000 + Math.floor((time?.nanos ?? 0) / 1e6);
}
