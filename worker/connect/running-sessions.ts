/** Asks Temporal once which of all sessions are running. */
import type { Client } from "@temporalio/client";
import { listRuns } from "./list-runs.ts";

/** Timeout for all pages. Source: ours; 10,000 sessions are ten pages. */
const LIST_MS = 30_000;

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
