/** Deletes what the operator's policy no longer keeps, a part of it in each round. */
import type { Client } from "@temporalio/client";
import type { OperatorPolicy } from "../activities/config/operator-policy.ts";
import type { Store } from "../activities/store/db.ts";
import { deleteFamily, readFamily } from "../activities/store/delete-session.ts";
import { aloneOverWorkers, dropOldOutputs, endedLongAgo } from "../activities/store/retention.ts";
import { forgetHistories } from "./connect/forget-histories.ts";
import { describedRun } from "./connect/described-run.ts";
import type { Logger } from "./logger.ts";

/** Sessions per round: 7,200 a day with a round every 10 minutes, and no long transaction. Source: ours. */
const MAX_SESSIONS = 50;
/** Shown by `status` as who deleted the session. */
const BY = "retention";

interface RetentionOptions {
  readonly store: Store;
  readonly client: Client;
  readonly logger: Logger;
}

/** One round, unless another worker is running one. */
export async function retain(
  options: RetentionOptions,
  { sessionsDays, outputsDays }: OperatorPolicy["retention"],
): Promise<void> {
  const { db } = options.store;
  if (sessionsDays === undefined && outputsDays === undefined) return;
  await aloneOverWorkers(db, async () => {
    if (sessionsDays !== undefined)
      for (const id of await endedLongAgo(db, sessionsDays, MAX_SESSIONS)) await deleteEnded(options, id);
    if (outputsDays !== undefined) {
      const sessions = await dropOldOutputs(db, outputsDays, MAX_SESSIONS);
      if (sessions > 0) options.logger.info({ sessions }, "removed outputs whose retention is over");
    }
  });
}

/** A session that is resumed at this moment is kept, and so is one with a running delegate. */
async function deleteEnded({ store, client, logger }: RetentionOptions, id: string): Promise<void> {
  const family = await readFamily(store.db, id);
  if (family.some(({ endedAt }) => endedAt === null) || (await isRunning(client, id))) return;
  const deletion = await deleteFamily(store.db, family, BY);
  if (deletion.kind === "changed") return;
  const { left, reason } = await forgetHistories(client, deletion.ids, deletion.runs);
  logger.info({ session: id }, "deleted a session whose retention is over");
  if (left > 0) logger.warn({ session: id, reason }, "Temporal keeps its history until its own retention");
}

async function isRunning(client: Client, id: string): Promise<boolean> {
  return (await describedRun(client, id))?.status === "RUNNING";
}
