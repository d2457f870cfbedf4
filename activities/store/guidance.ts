/** What persons said: parked while it is too much to carry, told apart by its ids, delivered once. */
import { and, asc, eq, inArray, isNull, sql } from "drizzle-orm";
import type { UserPart } from "../context/message.ts";
import type { Guidance } from "../contract.ts";
import type { Queryable } from "./db.ts";
import { guidance, storedMessages } from "./schema.ts";
import type { MessageMeta } from "./transcript.ts";

/** Keeps messages that are too many to carry. Idempotent by client id. */
export async function parkGuidance(
  db: Queryable,
  sessionId: string,
  items: readonly Guidance[],
): Promise<void> {
  if (items.length === 0) return;
  await db
    .insert(guidance)
    .values(items.map((item) => ({ sessionId, id: item.id, parts: item.parts, queuedAt: item.queuedAt })))
    .onConflictDoNothing();
}

/** Parked messages that were not delivered, oldest first, at most `limit`. */
export async function parkedGuidance(db: Queryable, sessionId: string, limit: number): Promise<Guidance[]> {
  const rows = await db
    .select()
    .from(guidance)
    .where(and(eq(guidance.sessionId, sessionId), isNull(guidance.deliveredSequence)))
    .orderBy(asc(guidance.ordinal))
    .limit(limit);
  return rows.map((row) => ({ id: row.id, parts: row.parts as UserPart[], queuedAt: row.queuedAt }));
}

export async function countParked(db: Queryable, sessionId: string): Promise<number> {
  const [row] = await db
    .select({ count: sql<number>`count(*)::int` })
    .from(guidance)
    .where(and(eq(guidance.sessionId, sessionId), isNull(guidance.deliveredSequence)));
  return row?.count ?? 0;
}

/** Which of the messages with these ids the live transcript has already, and where: id to sequence. */
export async function deliveredGuidance(
  db: Queryable,
  sessionId: string,
  ids: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  if (ids.length === 0) return new Map();
  const { rows } = await db.execute<{ id: string; sequence: string }>(sql`
    select carried.id, sequence from stored_messages, json_array_elements_text(meta->'ids') as carried(id)
    where session_id = ${sessionId} and superseded_epoch is null and kind = 'guidance'
    and carried.id in (select json_array_elements_text(${JSON.stringify(ids)}::json))`);
  return new Map(rows.map((row) => [row.id, Number(row.sequence)]));
}

/**
 * The slot of a step's next message of a person: a step that is taken again may have some already, of so many tokens, and
 * may have left others behind.
 */
export async function userSlot(
  db: Queryable,
  { sessionId, epoch }: { readonly sessionId: string; readonly epoch: number },
  step: number,
): Promise<{ slot: string; tokens: number; isFull: boolean }> {
  const rows = await db
    .select({ tokens: storedMessages.tokenCount, meta: storedMessages.meta })
    .from(storedMessages)
    .where(
      and(
        eq(storedMessages.sessionId, sessionId),
        eq(storedMessages.epoch, epoch),
        eq(storedMessages.step, step),
        eq(storedMessages.kind, "guidance"),
      ),
    );
  return {
    slot: rows.length === 0 ? "user" : `user:${rows.length}`,
    tokens: rows.reduce((sum, row) => sum + row.tokens, 0),
    isFull: rows.some((row) => (row.meta as MessageMeta | null)?.leftSome === true),
  };
}

export async function markDelivered(
  db: Queryable,
  sessionId: string,
  ids: readonly string[],
  sequence: number,
): Promise<void> {
  if (ids.length === 0) return;
  await db
    .update(guidance)
    .set({ deliveredSequence: sequence })
    .where(and(eq(guidance.sessionId, sessionId), inArray(guidance.id, [...ids])));
}
