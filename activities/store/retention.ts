/** Finds and removes old data: sessions that ended long ago, and their whole outputs. */
import { sql } from "drizzle-orm";
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
