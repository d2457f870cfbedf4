/** Starts, wakes and ends the follower of a session's pull request. What it does is in rows; its run holds no state. */
import { WorkflowFailedError } from "@temporalio/client";
import {
  FOLLOW_SIGNALS,
  FOLLOW_WORKFLOW_TYPE,
  followWorkflowId,
  type FollowOrder,
} from "../../activities/contract/follow.ts";
import type { OwnerMemo } from "../../activities/contract/run-memo.ts";
import { findFollow, type FollowRow } from "../../activities/store/follows.ts";
import type { SessionRow } from "../../activities/store/reading.ts";
import { until } from "../../temporal/patience.ts";
import { plainReason } from "../../temporal/service-missing.ts";
import { describedRun } from "../../temporal/runs.ts";
import type { Services } from "../connect/connection.ts";
import { unlessGone } from "../connect/describe-run.ts";
import { settled } from "../connect/missing-service.ts";
import { requireAccess } from "../connect/readiness.ts";
import { missing, notPossible } from "../console/errors.ts";
import { shellWord } from "../console/format.ts";
import { unlessTableMissing } from "../lookup/unless-table-missing.ts";
import { readStarter } from "../sessions/start-session.ts";
import { recordAction } from "../sessions/with-session.ts";

const POLL_MS = 200;
/** How long a worker may take to ask the forge. Chosen. */
const BEGIN_MS = 60_000;

/**
 * Begins to follow, or goes on with new bounds.
 * @throws ClientError (impossible) if the session has no open pull request, or another session follows it; (missing) if no worker does it
 */
export async function startFollowing(
  services: Services,
  row: SessionRow,
  followOrder: FollowOrder,
): Promise<FollowRow> {
  const workflowId = followWorkflowId(row.id);
  await requireAccess(services, workflowId);
  const client = await services.temporal.client();
  const before = await readFollow(services, row.id);
  const { taskQueue, installation } = await readStarter(services);
  const find = async () => (await describedRun(client, workflowId))?.runId;
  const formerRunId = await find();
  await settled({
    make: () =>
      client.workflow.signalWithStart(FOLLOW_WORKFLOW_TYPE, {
        workflowId,
        taskQueue,
        args: [{}],
        signal: FOLLOW_SIGNALS.goOn,
        signalArgs: [followOrder],
        staticSummary: "the pull request is followed until it is merged",
        memo: { installation } satisfies OwnerMemo,
      }),
    find: async () => ((await find()) === formerRunId ? undefined : client.workflow.getHandle(workflowId)),
    what: `it follows the pull request of ${row.id}`,
    again: `Ask again: it is followed once. See it with: longhaul status ${shellWord(row.id)}`,
  });
  await recordAction(services, row, "follow");
  return untilBegun(services, row.id, before);
}

/** A failure of the workflow is what a worker found when it asked the forge. */
async function untilBegun(services: Services, id: string, before: FollowRow | undefined): Promise<FollowRow> {
  const client = await services.temporal.client();
  const handle = client.workflow.getHandle(followWorkflowId(id));
  let failure: unknown;
  let now: FollowRow | undefined;
  const hasBegun = async () => {
    now = await readFollow(services, id);
    const isNew =
      now?.until.getTime() !== before?.until.getTime() ||
      now?.endedAt?.getTime() !== before?.endedAt?.getTime();
    if (isNew) return true;
    const run = await describedRun(client, handle.workflowId);
    if (run === undefined || run.status === "RUNNING") return false;
    // Asked only once it is there: a call that waits would be tried again after the connection is closed, and end the process.
    failure = await handle.result().then(
      () => undefined,
      (error: unknown) => error,
    );
    return failure !== undefined;
  };
  const begun = await until(hasBegun, BEGIN_MS, POLL_MS);
  if (failure !== undefined) throw notPossible(reasonOf(failure), `See: longhaul status ${shellWord(id)}`);
  if (!begun || now === undefined)
    throw missing(
      `No worker has begun to follow the pull request of ${id} within ${BEGIN_MS / 1_000} s.`,
      "The request is kept. Start a worker with `longhaul worker`.",
    );
  return now;
}

function reasonOf(error: unknown): string {
  let cause: unknown = error instanceof WorkflowFailedError ? error.cause : error;
  while (cause instanceof Error && cause.cause instanceof Error) cause = cause.cause;
  return plainReason(cause);
}

export const readFollow = ({ store }: Services, id: string): Promise<FollowRow | undefined> =>
  unlessTableMissing(() => findFollow(store.db, id));

/** @throws ClientError (impossible) if it is not followed; (missing) if no worker ends it */
export async function stopFollowing(services: Services, row: SessionRow): Promise<FollowRow> {
  const workflowId = followWorkflowId(row.id);
  await requireAccess(services, workflowId);
  const client = await services.temporal.client();
  const handle = client.workflow.getHandle(workflowId);
  // Temporal takes a cancel of a run that is over, too.
  const ending = await unlessGone(async () => {
    if ((await handle.describe()).status.name !== "RUNNING") return undefined;
    await handle.cancel();
    return true;
  });
  if (ending === undefined)
    throw notPossible(
      `The pull request of ${row.id} is not followed.`,
      `Follow it: longhaul follow ${shellWord(row.id)}`,
    );
  await recordAction(services, row, "unfollow");
  let now: FollowRow | undefined;
  const isOver = async () => {
    now = await readFollow(services, row.id);
    return now?.endedAt !== null;
  };
  if (!(await until(isOver, BEGIN_MS, POLL_MS)) || now === undefined)
    throw missing(
      `Following ${row.id} was asked to end, and no worker has done so within ${BEGIN_MS / 1_000} s.`,
      "The request is kept. Start a worker with `longhaul worker`.",
    );
  return now;
}

/** Has the follower look now. @returns false if there is none */
export async function wakeFollower(services: Services, row: SessionRow): Promise<boolean> {
  const client = await services.temporal.client();
  const woken = await unlessGone(() =>
    client.workflow
      .getHandle(followWorkflowId(row.id))
      .signal(FOLLOW_SIGNALS.woken)
      .then(() => true),
  );
  return woken === true;
}
