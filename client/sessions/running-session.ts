/** What only a running session takes: signals. */
import { WorkflowNotFoundError, type WorkflowHandle } from "@temporalio/client";
import type { Services } from "../connect/connection.ts";
import { notPossible, type ClientError } from "../console/errors.ts";
import { requireSession } from "./require-session.ts";

/**
 * Does something with the running workflow of a session.
 * @throws ClientError (impossible) where there is no such session, or it does not run
 */
export async function withRunning<T>(
  services: Services,
  id: string,
  work: (handle: WorkflowHandle) => Promise<T>,
): Promise<T> {
  const row = await requireSession(services, id);
  const client = await services.temporal.client();
  try {
    return await work(client.workflow.getHandle(id));
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) throw notRunning(id, row.status);
    throw error;
  }
}

export function notRunning(id: string, status: string): ClientError {
  // A run that was ended in Temporal itself could not write so.
  const how = status === "active" || status === "waiting" ? "its run was ended in Temporal" : status;
  return notPossible(`${id} is not running (${how}).`, `Resume it with: longhaul say ${id} "…"`);
}
