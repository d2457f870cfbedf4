/** Ends a session's run and waits for its clean-up. Follows only that run, whatever messages or retries follow. */
import { databaseNow, readKept, type Kept } from "../../activities/store/stopped-step.ts";
import type { SessionRow } from "../../activities/store/reading.ts";
import { until } from "../../temporal/until.ts";
import type { Services } from "../connect/connection.ts";
import { describeRun, unlessGone, type RunDescription } from "../connect/describe-run.ts";
import { missing, notPossible } from "../console/errors.ts";
import { notRunning, withRunning } from "./running-session.ts";
import { recordAction } from "./record-action.ts";

const POLL_MS = 100;
const WAIT_NOTE_MS = 5_000;
const MAX_WAIT_MS = 60_000;

export interface CancelledRun extends Kept {
  readonly runId: string;
}

/**
 * @param onSlow called once if the clean-up takes longer than 5 s
 * @throws ClientError (impossible) if nothing runs, or the run ended in another way first; (missing) if no worker
 *   takes the cancel for a minute: it is kept
 */
export async function cancelSession(
  services: Services,
  row: SessionRow,
  onSlow: () => void = () => undefined,
): Promise<CancelledRun> {
  const { id } = row;
  const { temporal, store } = services;
  const since = await databaseNow(store.db);
  let run = await describeRun(temporal, id);
  // If Temporal gave no answer, a second request reports what is wrong.
  if (run === undefined) await withRunning(services, row, (handle) => handle.describe());
  let asked: string | undefined;
  const isClosed = () => run !== undefined && run.status !== "RUNNING" && run.status !== "CONTINUED_AS_NEW";
  const slow = setTimeout(onSlow, WAIT_NOTE_MS);
  const closed = await until(
    async () => {
      if (isClosed()) return true;
      if (run?.status === "RUNNING" && asked !== run.runId) {
        // The session's end is the last event.
        if (asked === undefined) await recordAction(services, row, "cancel");
        if (await requestCancel(services, id, run)) asked = run.runId;
      }
      // If the run continued as new, its successor is the run to end.
      const followed = run?.status === "CONTINUED_AS_NEW" ? undefined : run?.runId;
      run = (await describeRun(temporal, id, followed)) ?? run;
      return isClosed();
    },
    MAX_WAIT_MS,
    POLL_MS,
  ).finally(() => clearTimeout(slow));
  if (!closed) throw noWorker(id, run?.trouble);
  if (asked === undefined) throw notRunning(row);
  if (run?.status !== "CANCELLED") throw endedOtherwise(id, run?.status ?? "");
  return { runId: asked, ...(await readKept(store.db, id, since)) };
}

/** @returns false if it has just ended: the next check shows how */
async function requestCancel(services: Services, id: string, { runId }: RunDescription): Promise<boolean> {
  const client = await services.temporal.client();
  const requested = await unlessGone(() => client.workflow.getHandle(id, runId).cancel());
  return requested !== undefined;
}

function endedOtherwise(id: string, status: string) {
  return status === "TERMINATED"
    ? notPossible(
        `The run of ${id} was replaced by a retry or terminated before the cancel reached it.`,
        `See where it stands: longhaul status ${id}`,
      )
    : notPossible(`${id} ended by itself before the cancel reached it (${status.toLowerCase()}).`);
}

function noWorker(id: string, trouble: string | undefined) {
  return missing(
    `${id} was asked to cancel, and no worker has done so within ${MAX_WAIT_MS / 1_000} s.`,
    trouble === undefined
      ? "The request is kept: start a worker with `longhaul worker`."
      : `The request is kept. It is tried again: ${trouble}`,
  );
}
