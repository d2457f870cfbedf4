/** Ends a session's run and waits until it has cleaned up. Follows that run alone, whatever is said or retried meanwhile. */
import { setTimeout as sleep } from "node:timers/promises";
import { WorkflowNotFoundError } from "@temporalio/client";
import { databaseNow, readKept, type Kept } from "../../activities/store/kept.ts";
import type { SessionRow } from "../../activities/store/reading.ts";
import type { Services } from "../connect/connection.ts";
import { describeRun, type RunDescription } from "../connect/describe-run.ts";
import { missing, notPossible } from "../console/errors.ts";
import { notRunning, withRunning } from "./running-session.ts";

const POLL_MS = 100;
const WAIT_NOTE_MS = 5_000;
const MAX_WAIT_MS = 60_000;

export interface CancelledRun extends Kept {
  readonly runId: string;
}

/**
 * @param onSlow called once where the clean-up takes longer than 5 s
 * @throws ClientError (impossible) where nothing runs, or the run ended in another way first; (missing) where no worker
 *   takes the cancel for a minute: it is kept
 */
export async function cancelSession(
  services: Services,
  row: SessionRow,
  onSlow: () => void = () => undefined,
): Promise<CancelledRun> {
  const { id } = row;
  const since = await databaseNow(services.store.db);
  let run = await describeRun(services.temporal, id);
  // Where Temporal could not say, asked once more it tells what is wrong.
  if (run === undefined) await withRunning(services, id, (handle) => handle.describe());
  const begun = performance.now();
  let isSlow = false;
  let asked: string | undefined;
  for (;;) {
    const waitedMs = performance.now() - begun;
    switch (run?.status) {
      case "RUNNING":
        if (asked !== run.runId) {
          if (await request(services, id, run)) asked = run.runId;
        }
        break;
      // A run that goes on in a fresh history: that is the one to end.
      case "CONTINUED_AS_NEW":
        run = await describeRun(services.temporal, id);
        continue;
      case "CANCELLED":
        if (asked === undefined) throw notRunning(id, row.status);
        return { runId: asked, ...(await readKept(services.store.db, id, since)) };
      case undefined:
        break;
      default:
        throw asked === undefined ? notRunning(id, row.status) : endedOtherwise(id, run?.status ?? "");
    }
    if (waitedMs > MAX_WAIT_MS) throw noWorker(id);
    if (!isSlow && waitedMs > WAIT_NOTE_MS) {
      isSlow = true;
      onSlow();
    }
    await sleep(POLL_MS);
    run = (await describeRun(services.temporal, id, run?.runId)) ?? run;
  }
}

/** @returns false where it ended in this very moment: the next look says how */
async function request(services: Services, id: string, { runId }: RunDescription): Promise<boolean> {
  const client = await services.temporal.client();
  try {
    await client.workflow.getHandle(id, runId).cancel();
    return true;
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return false;
    throw error;
  }
}

function endedOtherwise(id: string, status: string) {
  return status === "TERMINATED"
    ? notPossible(
        `The run of ${id} was replaced by a retry or terminated before the cancel reached it.`,
        `See where it stands: longhaul status ${id}`,
      )
    : notPossible(`${id} ended by itself before the cancel reached it (${status.toLowerCase()}).`);
}

function noWorker(id: string) {
  return missing(
    `${id} was asked to cancel, and no worker has done so within ${MAX_WAIT_MS / 1_000} s.`,
    "The request is kept: start a worker with `longhaul worker`.",
  );
}
