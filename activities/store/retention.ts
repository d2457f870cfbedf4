/** Finds and removes old data: sessions that ended long ago, and their whole outputs. */
import { sql } from "drizzle-orm";
import { dropBlobs } from "./blobs.ts";
import type { Database, Queryable } from "./db.ts";

/** Replaces an expired output: `read_output` shows it. */
export const OUTPUT_REMOVED =
  "[This output was removed by the operator's retention; run the call again where it is needed.]";

/**
 * Sessions that ended before the given time, the oldest first; delegates are deleted with their parents.
 * @param skip how many of the oldest are left out
 */
export async function endedLongAgo(db: Queryable, days: number, limit: number, skip = 0): Promise<string[]> {
  const { rows } = await db.execute<{ id: string }>(sql`
    select id from sessions where parent_id is null and ended_at < now() - ${days} * interval '1 day'
    order by ended_at, id limit ${limit} offset ${skip}`);
  return rows.map(({ id }) => id);
}

/**
 * Replaces the whole outputs of sessions that ended before the given time by a line that says so, some sessions at a time. The
 * parts that the model saw are in the transcript, and stay.
 * @returns the number of sessions
 */
export async function dropOldOutputs(db: Database, days: number, limit: number): Promise<number> {
  const { rows } = await db.execute<{ id: string }>(sql`
    select id from sessions s where ended_at < now() - ${days} * interval '1 day' and exists (
      select 1 from tool_outputs o where o.session_id = s.id and (part > 0 or content <> ${OUTPUT_REMOVED}))
    order by ended_at limit ${limit}`);
  for (const { id } of rows)
    await db.transaction(async (tx) => {
      // A session that was resumed meanwhile keeps its outputs.
      const { rowCount } = await tx.execute(
        sql`select 1 from sessions where id = ${id} and ended_at is not null for no key update`,
      );
      if (rowCount === 0) return;
      await tx.execute(sql`delete from tool_outputs where session_id = ${id} and part > 0`);
      await tx.execute(sql`
        update tool_outputs set "offset" = 0, content = ${OUTPUT_REMOVED} where session_id = ${id}`);
    });
  return rows.length;
}

/** How long bytes are kept for a session that does not begin: longer than any start takes. Source: ours. */
const UNSTARTED_DAYS = 1;

/**
 * Removes the files of starts that never happened: they were stored for a session that does not exist, and no batch has it.
 * @returns how many sessions these were
 */
export async function dropUnstarted(db: Database, limit: number): Promise<number> {
  return db.transaction(async (tx) => {
    const { rows } = await tx.execute<{ id: string; sha256: string }>(sql`
      delete from blob_uses where session_id in (
        select distinct u.session_id from blob_uses u
        where u.kept_at < now() - ${UNSTARTED_DAYS} * interval '1 day'
        and not exists (select 1 from blob_uses n where n.session_id = u.session_id and n.kept_at >= now() - ${UNSTARTED_DAYS} * interval '1 day')
        and not exists (select 1 from sessions s where s.id = u.session_id)
        and not exists (select 1 from batch_items b where b.session_id = u.session_id) limit ${limit})
      returning session_id as id, sha256`);
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
