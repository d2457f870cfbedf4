/** Finds and removes old data: sessions that ended long ago, and their whole outputs. */
import {
  and,
  asc,
  eq,
  exists,
  gt,
  gte,
  inArray,
  isNotNull,
  isNull,
  lt,
  ne,
  notExists,
  or,
  sql,
} from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import { dropBlobs } from "./blobs.ts";
import type { Database, Queryable } from "./db.ts";
import { batchItems, blobUses, follows, sessions, toolOutputs } from "./schema/index.ts";
import { ANY, part } from "./statements.ts";

/** Replaces an expired output: `read_output` shows it. */
export const OUTPUT_REMOVED =
  "[This output was removed by the operator's retention; run the call again where it is needed.]";

/** By the database's clock. */
const daysAgo = (days: number) => sql`now() - ${days} * interval '1 day'`;

/**
 * Sessions that ended before the given time, the oldest first; delegates are deleted with their parents, and those whose pull
 * request is followed stay until that is over.
 * @param skip how many of the oldest are left out
 */
export async function endedLongAgo(db: Queryable, days: number, limit: number, skip = 0): Promise<string[]> {
  const followed = part
    .select(ANY)
    .from(follows)
    .where(and(eq(follows.sessionId, sessions.id), isNull(follows.endedAt)));
  const rows = await db
    .select({ id: sessions.id })
    .from(sessions)
    .where(and(isNull(sessions.parentId), lt(sessions.endedAt, daysAgo(days)), notExists(followed)))
    .orderBy(asc(sessions.endedAt), asc(sessions.id))
    .limit(limit)
    .offset(skip);
  return rows.map(({ id }) => id);
}

/**
 * Replaces the whole outputs of sessions that ended before the given time by a line that says so, some sessions at a time. The
 * parts that the model saw are in the transcript, and stay.
 * @returns the number of sessions
 */
export async function dropOldOutputs(db: Database, days: number, limit: number): Promise<number> {
  const withOutput = part
    .select(ANY)
    .from(toolOutputs)
    .where(
      and(
        eq(toolOutputs.sessionId, sessions.id),
        or(gt(toolOutputs.part, 0), ne(toolOutputs.content, OUTPUT_REMOVED)),
      ),
    );
  const rows = await db
    .select({ id: sessions.id })
    .from(sessions)
    .where(and(lt(sessions.endedAt, daysAgo(days)), exists(withOutput)))
    .orderBy(asc(sessions.endedAt))
    .limit(limit);
  for (const { id } of rows)
    await db.transaction(async (tx) => {
      // A session that was resumed meanwhile keeps its outputs.
      const [row] = await tx
        .select({ id: sessions.id })
        .from(sessions)
        .where(and(eq(sessions.id, id), isNotNull(sessions.endedAt)))
        .for("no key update");
      if (row === undefined) return;
      const isMine = eq(toolOutputs.sessionId, id);
      await tx.delete(toolOutputs).where(and(isMine, gt(toolOutputs.part, 0)));
      await tx.update(toolOutputs).set({ offset: 0, content: OUTPUT_REMOVED }).where(isMine);
    });
  return rows.length;
}

/** How long bytes are kept for a session that does not begin. Chosen: longer than any start takes. */
const UNSTARTED_DAYS = 1;

/**
 * Removes the files of starts that never happened: they were stored for a session that does not exist, and no batch has it.
 * @returns how many sessions these were
 */
export async function dropUnstarted(db: Database, limit: number): Promise<number> {
  return db.transaction(async (tx) => {
    const [old, newer] = [alias(blobUses, "old"), alias(blobUses, "newer")];
    const unstarted = part
      .selectDistinct({ id: old.sessionId })
      .from(old)
      .where(
        and(
          lt(old.keptAt, daysAgo(UNSTARTED_DAYS)),
          notExists(
            part
              .select(ANY)
              .from(newer)
              .where(and(eq(newer.sessionId, old.sessionId), gte(newer.keptAt, daysAgo(UNSTARTED_DAYS)))),
          ),
          notExists(part.select(ANY).from(sessions).where(eq(sessions.id, old.sessionId))),
          notExists(part.select(ANY).from(batchItems).where(eq(batchItems.sessionId, old.sessionId))),
        ),
      )
      .limit(limit);
    const rows = await tx
      .delete(blobUses)
      .where(inArray(blobUses.sessionId, unstarted))
      .returning({ id: blobUses.sessionId, sha256: blobUses.sha256 });
    await dropBlobs(tx, [...new Set(rows.map(({ sha256 }) => sha256))]);
    return new Set(rows.map(({ id }) => id)).size;
  });
}

/**
 * Runs `body` unless another worker is running it at this moment. The lock is the connection's: a transaction that idles as long
 * as this may take would be ended.
 */
export async function aloneOverWorkers(db: Database, body: () => Promise<void>): Promise<void> {
  const client = await db.$client.connect();
  let isUnlocked = false;
  try {
    const { rows } = await client.query<{ locked: boolean }>(
      "select pg_try_advisory_lock(hashtext('longhaul'), hashtext('retention')) as locked",
    );
    try {
      if (rows[0]?.locked === true) await body();
    } finally {
      if (rows[0]?.locked === true)
        await client.query("select pg_advisory_unlock(hashtext('longhaul'), hashtext('retention'))");
      isUnlocked = true;
    }
  } finally {
    // Closed if it may still have the lock.
    client.release(!isUnlocked);
  }
}
