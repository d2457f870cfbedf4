/** Ends a batch: nothing more is started, and its running sessions are asked to cancel. */
import { batchWorkflowId } from "../../activities/contract/batch.ts";
import { findBatch } from "../../activities/store/batches.ts";
import { findSession } from "../../activities/store/reading.ts";
import { until } from "../../temporal/until.ts";
import type { Services } from "../connect/connection.ts";
import { unlessGone } from "../connect/describe-run.ts";
import { missing, notPossible } from "../console/errors.ts";
import { unlessTableMissing } from "../lookup/unless-table-missing.ts";
import { readBatch, type BatchDocument } from "./batch-document.ts";

const POLL_MS = 200;
/** How long to wait for a session's clean-up. */
const MAX_WAIT_MS = 60_000;

/** Whether the name belongs to a batch, and not to a session. */
export async function isBatch({ store: { db } }: Services, name: string): Promise<boolean> {
  const batch = await unlessTableMissing(() => findBatch(db, name));
  return batch !== undefined && (await findSession(db, name)) === undefined;
}

/** @throws ClientError (impossible) if it is not running; (missing) if its sessions take longer than a minute to end */
export async function cancelBatch(services: Services, name: string): Promise<BatchDocument> {
  const client = await services.temporal.client();
  const handle = client.workflow.getHandle(batchWorkflowId(name));
  const asked = await unlessGone(async () => {
    if ((await handle.describe()).status.name !== "RUNNING") return undefined;
    await handle.cancel();
    return true;
  });
  if (asked === undefined)
    throw notPossible(
      `The batch ${name} is not running.`,
      `See what became of it: longhaul batch status ${name}`,
    );
  const isOver = async () => (await readBatch(services, name)).endedAt !== null;
  if (!(await until(isOver, MAX_WAIT_MS, POLL_MS)))
    throw missing(
      `${name} was asked to cancel, and not all of its sessions have ended within ${MAX_WAIT_MS / 1_000} s.`,
      `The request is kept. Check that a worker runs (longhaul doctor), then: longhaul batch status ${name}`,
    );
  return readBatch(services, name);
}
