/** Operations that only a running session accepts: signals. */
import type { WorkflowHandle } from "@temporalio/client";
import type { SessionRow } from "../../activities/store/reading.ts";
import type { Services } from "../connect/connection.ts";
import { unlessGone } from "../connect/describe-run.ts";
import { requireKey } from "../connect/require-key.ts";
import { notPossible, type ClientError } from "../console/errors.ts";

/**
 * Runs an operation on a session's running workflow.
 * @throws ClientError (impossible) if it does not run, (missing) as `requireKey`
 */
export async function withRunning<T>(
  services: Services,
  row: SessionRow,
  use: (handle: WorkflowHandle) => Promise<T>,
): Promise<T> {
  await requireKey(services.temporal, row.id);
  const client = await services.temporal.client();
  const done = await unlessGone(async () => ({ value: await use(client.workflow.getHandle(row.id)) }));
  if (done === undefined) throw notRunning(row);
  return done.value;
}

export function notRunning({ id, status }: SessionRow): ClientError {
  // A run that was ended in Temporal itself could not store its end.
  const how = status === "active" || status === "waiting" ? "its run was ended in Temporal" : status;
  return notPossible(`${id} is not running (${how}).`, `Resume it with: longhaul say ${id} "go on"`);
}
