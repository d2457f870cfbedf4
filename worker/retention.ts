/** Deletes what the operator's policy no longer keeps, and what deleted sessions left on this host, a part of it in each round. */
import type { Client } from "@temporalio/client";
import type { OperatorPolicy } from "../activities/config/operator-policy.ts";
import { reasonOf } from "../activities/contract/errors.ts";
import type { Store } from "../activities/store/db.ts";
import { deleteFamily, readFamily, deletedHashes, findDeleted } from "../activities/store/delete-session.ts";
import {
  aloneOverWorkers,
  dropOldOutputs,
  dropUnstarted,
  endedLongAgo,
} from "../activities/store/retention.ts";
import { removeUnusedObjects } from "../activities/store/stored-objects.ts";
import { forgetHistories } from "../temporal/forget-histories.ts";
import { describedOwnRun } from "../temporal/own-runs.ts";
import type { Logger } from "./logger.ts";
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { SandboxHost } from "../activities/sandbox/sandbox-host.ts";
import { findSession } from "../activities/store/sessions.ts";
import { withSandboxLock } from "../activities/store/session-locks.ts";

/** Sessions per round. Chosen: 7,200 a day with a round every 10 minutes, and no long transaction. */
const MAX_SESSIONS = 50;
/** So many failures in a row may mean that Temporal is away: the next round goes on behind them. Chosen: as many as a round has. */
const MAX_FAILURES = 50;
/** Shown by `status` as who deleted the session. */
const BY = "retention";

interface RetentionOptions {
  readonly store: Store;
  readonly client: Client;
  readonly logger: Logger;
  /** Of our workflows. */
  readonly taskQueue: string;
}

/** @returns one round of it, unless another worker is running one */
export function createRetention({ sessionsDays, outputsDays }: OperatorPolicy["retention"]) {
  /** How many of the oldest sessions the next round passes over. */
  let passedOver = 0;
  return async (options: RetentionOptions): Promise<void> => {
    const { db } = options.store;
    await aloneOverWorkers(db, async () => {
      const unstarted = await dropUnstarted(db, MAX_SESSIONS);
      if (unstarted > 0) options.logger.info({ unstarted }, "removed files of starts that never happened");
      const objects = await removeUnusedObjects(db);
      if (objects > 0)
        options.logger.info({ objects }, "removed saves from the object store that no session has any more");
      if (sessionsDays !== undefined) {
        const skipped = passedOver;
        passedOver = 0;
        passedOver = await deleteOld(options, sessionsDays, skipped);
      }
      if (outputsDays !== undefined) {
        const sessions = await dropOldOutputs(db, outputsDays, MAX_SESSIONS);
        if (sessions > 0) options.logger.info({ sessions }, "removed outputs whose retention is over");
      }
    });
  };
}

/**
 * What cannot go is passed over, so that it does not keep the rest.
 * @param skipped how many of the oldest an earlier round passed over
 * @returns how many the next round passes over
 */
async function deleteOld(options: RetentionOptions, days: number, skipped: number): Promise<number> {
  const { store } = options;
  let [deleted, failures] = [0, 0];
  while (deleted < MAX_SESSIONS && failures < MAX_FAILURES) {
    const ids = await endedLongAgo(store.db, days, MAX_SESSIONS, skipped);
    if (ids.length === 0) return 0;
    for (const id of ids) {
      const isGone = await deleteEnded(options, id).catch((error: unknown) => {
        options.logger.warn(
          { session: id, reason: reasonOf(error) },
          "a session whose retention is over could not be deleted",
        );
        return undefined;
      });
      failures = isGone === undefined ? failures + 1 : 0;
      if (isGone === true) deleted += 1;
      else skipped += 1;
    }
  }
  return failures >= MAX_FAILURES ? skipped : 0;
}

/**
 * A session that is resumed at this moment is kept, and so is one with a running delegate.
 * @returns whether it is deleted
 */
async function deleteEnded(options: RetentionOptions, id: string): Promise<boolean> {
  const { store, client, logger, taskQueue } = options;
  const family = await readFamily(store.db, id);
  if (family.some(({ endedAt }) => endedAt === null) || (await isRunning(options, id))) return false;
  const deletion = await deleteFamily(store.db, family, BY);
  if (deletion.kind === "changed") return false;
  logger.info({ session: id }, "deleted a session whose retention is over");
  const { left, reason } = await forgetHistories(client, { db: store.db, taskQueue }, deletion);
  if (left > 0) logger.warn({ session: id, reason }, "Temporal keeps its history until its own retention");
  return true;
}

async function isRunning({ client, store, taskQueue }: RetentionOptions, id: string): Promise<boolean> {
  return (await describedOwnRun(client, { db: store.db, taskQueue }, id))?.status === "RUNNING";
}

/** Removes a sandbox, unsaved, whose session was deleted. @returns whether there was one */
export async function removeDeleted(store: Store, host: SandboxHost, id: string): Promise<boolean> {
  return withSandboxLock(store, id, async (tx) => {
    // A session of the same id may have been started since.
    if ((await findDeleted(tx, id)) === undefined || (await findSession(tx, id)) !== undefined) return false;
    await host.remove(id);
    return true;
  });
}

/** Removes the images that deleted sessions' set-ups made here. @returns a line for each */
export async function removeDeletedSetUps(
  store: Store,
  { setUps }: Pick<SandboxHost, "setUps">,
): Promise<string[]> {
  const removed: string[] = [];
  for (const id of (await setUps?.makers()) ?? [])
    if ((await findDeleted(store.db, id)) !== undefined && (await findSession(store.db, id)) === undefined)
      removed.push(...((await setUps?.forget(id)) ?? []));
  return removed;
}

/** @param folder where the worker keeps its repositories; it may not exist */
export async function removeDeletedRelays(store: Store, folder: string): Promise<void> {
  const relays = join(folder, "relays");
  const names = await readdir(relays).catch(() => []);
  const hashes = names.filter((name) => /^[0-9a-f]{24}\.git$/.test(name)).map((name) => name.slice(0, 24));
  for (const hash of await deletedHashes(store.db, hashes))
    await rm(join(relays, `${hash}.git`), { recursive: true, force: true });
}
