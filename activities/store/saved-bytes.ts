/** How many bytes of a session's files the database holds, and which save is replaced when the limit is reached. */
import { and, eq, lt, ne, notExists, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import { checkpointById, type Checkpoint } from "./checkpoints.ts";
import type { Queryable } from "./db.ts";
import type { EventType } from "./event.ts";
import { checkpoints, events } from "./schema/index.ts";
import { ANY, part, prepared } from "./statements.ts";

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
  const above = await db
    .select({ id: checkpoints.id })
    .from(checkpoints)
    .where(eq(checkpoints.parentId, newest.id))
    .limit(1);
  if (above.length > 0) return undefined;
  return { base: newest.parentId === null ? undefined : await checkpointById(db, newest.parentId) };
}

/** Removes a replaced save, in the transaction that stores its replacement; a save that others build on stays. */
export async function removeSave(tx: Queryable, { id }: Pick<Checkpoint, "id">, by: number): Promise<void> {
  const child = alias(checkpoints, "child");
  const above = part.select(ANY).from(child).where(eq(child.parentId, id));
  await tx.delete(checkpoints).where(and(eq(checkpoints.id, id), ne(checkpoints.id, by), notExists(above)));
}

/** The model's notice about its files after a reset to before a step: some saves may have been removed. */
export async function filesAsOf(tx: Queryable, sessionId: string, step: number): Promise<string> {
  const full = "sandbox:saves-full" satisfies EventType;
  const rows = await tx
    .select({ seq: events.seq })
    .from(events)
    .where(and(eq(events.sessionId, sessionId), eq(events.type, full), lt(events.step, step)))
    .limit(1);
  return rows.length === 0
    ? "as they were then"
    : "as they were at the last save before that, which may be some steps earlier, so look at them";
}
