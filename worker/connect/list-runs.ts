/** Sessions' runs as Temporal lists them, without decoding what they carry: it may be encrypted with keys that we lack. */
import type { Client } from "@temporalio/client";
import { WORKFLOW_TYPE } from "../../workflows/messages.ts";

/** The server's own limit. */
const PAGE_SIZE = 1_000;
/** temporal.api.enums.v1.WorkflowExecutionStatus */
const RUNNING = 1;
/** Timeout for all pages. Source: ours; 10,000 sessions are ten pages. */
const LIST_MS = 30_000;

export interface ListedRun {
  readonly workflowId: string;
  readonly taskQueue: string;
  readonly isRunning: boolean;
}

/** Newest first. The list may lag behind by a moment. */
export async function* listRuns(
  { workflowService, options: { namespace } }: Client,
  which: "running" | "all",
): AsyncGenerator<ListedRun> {
  const query = `WorkflowType = '${WORKFLOW_TYPE}'${which === "all" ? "" : " and ExecutionStatus = 'Running'"}`;
  let nextPageToken: Uint8Array | undefined;
  do {
    const page = await workflowService.listWorkflowExecutions({
      namespace,
      query,
      pageSize: PAGE_SIZE,
      ...(nextPageToken && { nextPageToken }),
    });
    for (const { execution, taskQueue, status } of page.executions)
      yield {
        workflowId: execution?.workflowId ?? "",
        taskQueue: taskQueue ?? "",
        isRunning: Number(status) === RUNNING,
      };
    nextPageToken = page.nextPageToken;
  } while (nextPageToken !== undefined && nextPageToken.length > 0);
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
