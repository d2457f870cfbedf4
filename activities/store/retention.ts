/** What is old enough to go: sessions that ended long ago, and whole outputs of those. */
import { sql } from "drizzle-orm";
import type { Database, Queryable } from "./db.ts";

/** Replaces an expired output: `read_output` shows it. */
export const OUTPUT_REMOVED =
  "[This output was removed by the operator's retention; run the call again where it is needed.]";

/** Sessions that ended before the given time, the oldest first; delegates are deleted with their parents. */
export async function endedLongAgo(db: Queryable, days: number, limit: number): Promise<string[]> {
  const { rows } = await db.execute<{ id: string }>(sql`
    select id from sessions where parent_id is null and ended_at < now() - ${days} * interval '1 day'
    order by ended_at limit ${limit}`);
  return rows.map(({ id }) => id);
}

/**
 * Replaces the whole outputs of sessions that ended so long ago by a line that says so, of some sessions at a time. What the
 * model was shown of them is in the transcript, and stays.
 * @returns of how many sessions
 */
export async function dropOldOutputs(db: Database, days: number, limit: number): Promise<number> {
  const { rows } = await db.execute<{ id: string }>(sql`
    select id from sessions s where ended_at < now() - ${days} * interval '1 day' and exists (
      select 1 from tool_outputs o where o.session_id = s.id and (part > 0 or content <> ${OUTPUT_REMOVED}))
    order by ended_at limit ${limit}`);
  for (const { id } of rows)
    await db.transaction(async (tx) => {
      // A session that was resumed meanwhile keeps them.
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

/** Runs unless another worker does at this moment. */
export async function aloneOverWorkers(db: Database, work: () => Promise<void>): Promise<void> {
  await db.transaction(async (tx) => {
    const { rows } = await tx.execute<{ locked: boolean }>(
      sql`select pg_try_advisory_xact_lock(hashtext('longhaul'), hashtext('retention')) as locked`,
    );
    if (rows[0]?.locked === true) await work();
  });
}
