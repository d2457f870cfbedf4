/** Sessions' runs as Temporal lists them, without decoding what they carry: it may be encrypted with keys that we lack. */
import type { Client } from "@temporalio/client";
import { WORKFLOW_TYPE } from "../workflows/messages.ts";
import { millisecondsOf, statusName, type RunStatus } from "./described-run.ts";

/** The server's own limit. */
const PAGE_SIZE = 1_000;
/** Timeout for all pages. Source: ours; 10,000 sessions are ten pages. */
const LIST_MS = 30_000;

export interface ListedRun {
  readonly workflowId: string;
  readonly runId: string;
  readonly taskQueue: string;
  readonly status: RunStatus;
  readonly startedMs: number;
}

/**
 * Newest first. The list may lag behind by a moment.
 * @param which of the sessions; or every run of one workflow, whatever its type
 */
export async function* listRuns(
  { workflowService, options: { namespace } }: Client,
  which: "running" | "all" | { readonly workflowId: string },
): AsyncGenerator<ListedRun> {
  const query = queryOf(which);
  let nextPageToken: Uint8Array | undefined;
  do {
    const page = await workflowService.listWorkflowExecutions({
      namespace,
      query,
      pageSize: PAGE_SIZE,
      ...(nextPageToken && { nextPageToken }),
    });
    for (const { execution, taskQueue, status, startTime } of page.executions)
      yield {
        workflowId: execution?.workflowId ?? "",
        runId: execution?.runId ?? "",
        taskQueue: taskQueue ?? "",
        status: statusName(status),
        startedMs: millisecondsOf(startTime),
      };
    nextPageToken = page.nextPageToken;
  } while (nextPageToken !== undefined && nextPageToken.length > 0);
}

function queryOf(which: "running" | "all" | { readonly workflowId: string }): string {
  if (typeof which === "object") return `WorkflowId = '${which.workflowId.replaceAll(/['\\]/g, "\\$&")}'`;
  return `WorkflowType = '${WORKFLOW_TYPE}'${which === "all" ? "" : " and ExecutionStatus = 'Running'"}`;
}

/**
 * Ids of the sessions that Temporal lists as running. The list lags behind by moments: one that has just begun may be missing,
 * one that has just ended may be in it. Before acting on a session that is missing, ask for it by its id.
 * @returns none if the server cannot list
 */
export async function listedAsRunning(client: Client): Promise<ReadonlySet<string>> {
  const ids = new Set<string>();
  try {
    await client.withAbortSignal(AbortSignal.timeout(LIST_MS), async () => {
      for await (const { workflowId } of listRuns(client, "running")) ids.add(workflowId);
    });
    return ids;
  } catch {
    return new Set();
  }
}
