/**
 * Live workers detect lost ones and fail their activities by id, so that Temporal gives these to another worker at once instead
 * of after 30 s without a heartbeat. A frozen worker keeps its open polls; tasks that Temporal hands to them are given back at
 * each check, instead of waiting for one timeout after the other. If a worker is wrongly considered lost, nothing breaks: its
 * attempt learns from its next heartbeat that it is no longer wanted, and its late writes are refused.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "@temporalio/client";
import type { NativeConnection } from "@temporalio/worker";
import type { Store } from "../activities/store/db.ts";
import { activeSessionIds } from "../activities/store/sessions.ts";
import type { LostWorker, WorkerLease } from "../activities/store/worker-lease.ts";
import type { CodecKey } from "../temporal/codec.ts";
import { temporalClient } from "../temporal/temporal-client.ts";
import { isNotFound, whereFound } from "../temporal/runs.ts";
import type { Logger } from "./logger.ts";
import type { Service } from "../activities/process/service.ts";
import { Repeating } from "./services.ts";
import { reasonOf } from "../activities/contract/errors.ts";

export interface LostWorkersOptions {
  readonly lease: Pick<WorkerLease, "missing" | "settle">;
  readonly store: Store;
  readonly connection: NativeConnection;
  readonly namespace: string;
  /** Keys that encrypt what Temporal sees; default: none. */
  readonly codecKeys?: readonly CodecKey[];
  readonly identity: string;
  readonly logger: Logger;
}

/** Poll interval while no worker is missing. Source: with the following check, a lost worker is found within 3 s, at 5 commits in 10 s. */
const LOOK_EVERY_MS = 2_300;
/** Poll interval after a worker had no lease or was silent: if it is missing in two checks in a row, it is lost. */
const LOOK_AGAIN_MS = 500;
const LATE_MS = 1_000;
/** Requests to Temporal in parallel. */
const AT_ONCE = 8;
/** Temporal's numbers for pending activities that a worker has: started, cancel requested, pause requested. */
const CANCEL_REQUESTED = 3;
const RUNNING: ReadonlySet<number> = new Set([2, CANCEL_REQUESTED, 5]);
/** A retry delay of zero would mean the policy's own. */
const A_MOMENT = { nanos: 1_000_000 } as const;
const WORKER_LOST = {
  message: "The worker that ran this is gone. What was stored is kept; another worker continues with it.",
  source: "longhaul",
  applicationFailureInfo: { type: "WorkerLost", nonRetryable: false, nextRetryDelay: A_MOMENT },
};

/** How often a frozen worker's work is given back: each time costs a request for every active session. */
const FROZEN_EVERY_MS = 2_000;

/** Looks for lost workers as long as it runs. */
export function createLostWorkersWatch(options: LostWorkersOptions): Service {
  const { lease, logger } = options;
  const client = temporalClient(options, options.codecKeys);
  let suspects = new Set<number>();
  /** When the work of a frozen worker was given back last, by its id. */
  const freedAt = new Map<number, number>();
  const round = async () => {
    const missing = await lease.missing();
    for (const lost of missing.filter(({ id }) => suspects.has(id))) {
      if (lost.frozen && performance.now() - (freedAt.get(lost.id) ?? -Infinity) < FROZEN_EVERY_MS) continue;
      freedAt.set(lost.id, performance.now());
      let freed = 0;
      const settled = await lease.settle(lost, async () => {
        freed = await freeWork(client, options, lost);
        if (lost.frozen) return;
        // A task that Temporal gave to it just then is seen a moment later.
        await sleep(LATE_MS);
        freed += await freeWork(client, options, lost);
      });
      const state = lost.frozen ? "frozen" : "gone";
      if (settled && (freed > 0 || !lost.frozen))
        logger.warn({ worker: lost.identity, activities: freed }, `a worker is ${state}; its work continues`);
    }
    suspects = new Set(missing.map(({ id }) => id));
  };
  // The next check tries again; without it, Temporal notices the missing heartbeats.
  const onFailure = (error: unknown) =>
    logger.warn({ reason: reasonOf(error) }, "lost workers were not looked for; the next check tries again");
  const waitMs = () => (suspects.size > 0 ? LOOK_AGAIN_MS : LOOK_EVERY_MS);
  return new Repeating({ round, waitMs, isDueAtStart: false, onFailure });
}

/**
 * Asks first about the sessions that the worker noted itself, which has nearly all of its calls; then about all others: with
 * thousands of sessions that takes seconds.
 * @returns how many activities were given back
 */
async function freeWork(client: Client, options: LostWorkersOptions, lost: LostWorker): Promise<number> {
  const freed = await freeSessions(client, options, lost, lost.sessions);
  const noted = new Set(lost.sessions);
  const others = (await activeSessionIds(options.store.db)).filter((id) => !noted.has(id));
  return freed + (await freeSessions(client, options, lost, others));
}

async function freeSessions(
  client: Client,
  options: LostWorkersOptions,
  lost: LostWorker,
  sessionIds: readonly string[],
): Promise<number> {
  const ids = [...sessionIds];
  let freed = 0;
  const next = async (): Promise<void> => {
    for (let id = ids.pop(); id !== undefined; id = ids.pop())
      freed += await freeSession(client, options, lost, id);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, next));
  return freed;
}

async function freeSession(
  client: Client,
  { namespace, identity }: LostWorkersOptions,
  lost: LostWorker,
  workflowId: string,
): Promise<number> {
  const described = await whereFound(client.workflow.getHandle(workflowId).describe());
  const running = (described?.raw.pendingActivities ?? []).filter(
    ({ lastWorkerIdentity, state }) => lastWorkerIdentity === lost.identity && RUNNING.has(Number(state)),
  );
  const freed = await Promise.all(
    running.map(({ activityId, state }) => {
      const activity = {
        namespace,
        workflowId,
        runId: described?.runId ?? "",
        activityId: activityId ?? "",
        identity,
      };
      const answered =
        Number(state) === CANCEL_REQUESTED
          ? client.workflowService.respondActivityTaskCanceledById(activity)
          : client.workflowService.respondActivityTaskFailedById({ ...activity, failure: WORKER_LOST });
      return answered.then(
        () => 1,
        (error: unknown) => {
          // The activity has ended in the meantime, or another worker has it.
          if (isNotFound(error)) return 0;
          throw error;
        },
      );
    }),
  );
  return freed.reduce<number>((sum, count) => sum + count, 0);
}
