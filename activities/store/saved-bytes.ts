/** How many bytes of a session's files the database holds, and which save is replaced when the limit is reached. */
import { and, eq, ne, not, sql } from "drizzle-orm";
import { checkpointById, type Checkpoint } from "./checkpoints.ts";
import type { Queryable } from "./db.ts";
import { prepared } from "./prepared.ts";
import { checkpoints } from "./schema/index.ts";

/** Stored size of all saves, including abandoned lines. Reads no save. */
export async function savedBytes(db: Queryable, sessionId: string): Promise<number> {
  const [row] = await bytesQuery(db).execute({ sessionId });
  return row?.bytes ?? 0;
}

const size = (column: unknown) => sql`pg_column_size(${column})`;
const bytesQuery = prepared((db) =>
  db
    .select({
      bytes: sql<number>`coalesce(sum(${size(checkpoints.pack)} + ${size(checkpoints.manifest)}), 0)::float8`,
    })
    .from(checkpoints)
    .where(eq(checkpoints.sessionId, sql.placeholder("sessionId")))
    .prepare("saved_bytes"),
);

/**
 * The base for a save that replaces the newest one.
 * @returns undefined if the newest one must stay: the session began with it, or another save builds on it
 */
export async function besidesNewest(
  db: Queryable,
  newest: Checkpoint,
): Promise<{ readonly base: Checkpoint | undefined } | undefined> {
  if (newest.step < 1) return undefined;
  const { rows } = await db.execute(sql`select 1 from checkpoints where parent_id = ${newest.id} limit 1`);
  if (rows.length > 0) return undefined;
  return { base: newest.parentId === null ? undefined : await checkpointById(db, newest.parentId) };
}

/** Removes a replaced save, in the transaction that stores its replacement; a save that others build on stays. */
export async function removeSave(tx: Queryable, { id }: Pick<Checkpoint, "id">, by: number): Promise<void> {
  const isBuiltOn = sql`exists (select 1 from checkpoints child where child.parent_id = ${id})`;
  await tx.delete(checkpoints).where(and(eq(checkpoints.id, id), ne(checkpoints.id, by), not(isBuiltOn)));
}

/** The model's notice about its files after a reset to before a step: some saves may have been removed. */
export async function filesAsOf(tx: Queryable, sessionId: string, step: number): Promise<string> {
  const { rows } = await tx.execute(sql`select 1 from events
    where session_id = ${sessionId} and type = 'sandbox:saves-full' and step < ${step} limit 1`);
  return rows.length === 0
    ? "as they were then"
    : "as they were at the last save before that, which may be some steps earlier, so look at them";
}
