/**
 * `message:queued`: a message waits. Stored once, by its sender or by the first worker that sees it. A worker also mends what the
 * sender stored, because the sender does not know all secrets.
 */
import { and, eq, sql } from "drizzle-orm";
import type { QueuedMessage } from "../contract/guidance.ts";
import type { Queryable } from "./db.ts";
import { appendEvents } from "./events.ts";
import { cursors, events } from "./schema/index.ts";
import { anyOf } from "./statements.ts";

/** Beyond this many, messages are not announced one by one: a person may queue no more. */
const MAX_ANNOUNCED = 100;

interface Announced {
  readonly id: string;
  readonly seq: number;
  readonly data: QueuedMessage;
}

/** @returns those that were announced before. @param tx a transaction: the check and the events must be atomic, under the lock of the session's event counter */
export async function announceQueued(
  tx: Queryable,
  at: { readonly sessionId: string; readonly epoch: number; readonly step: number },
  messages: readonly QueuedMessage[],
): Promise<ReadonlyMap<string, Announced>> {
  const list = messages.slice(0, MAX_ANNOUNCED);
  if (list.length === 0) return new Map();
  await tx
    .select({ seq: cursors.eventSeq })
    .from(cursors)
    .where(eq(cursors.sessionId, at.sessionId))
    .for("update");
  const id = sql<string>`${events.data}->>'id'`;
  const rows = await tx
    .select({ id: sql<string>`${id}`, seq: events.seq, data: sql<QueuedMessage>`${events.data}` })
    .from(events)
    .where(
      and(
        eq(events.sessionId, at.sessionId),
        // Not as a parameter: the index has only these.
        sql`${events.type} = 'message:queued'`,
        anyOf(
          id,
          list.map((message) => message.id),
        ),
      ),
    );
  const announced = new Map(rows.map((row) => [row.id, row]));
  await appendEvents(
    tx,
    at.sessionId,
    at.epoch,
    list
      .filter((message) => !announced.has(message.id))
      .map((data) => ({ type: "message:queued" as const, step: at.step, data })),
  );
  return announced;
}

/** As `announceQueued`, by a worker: an excerpt that the sender stored is replaced by the worker's, which is masked. */
export async function announceMasked(
  ...[tx, at, messages]: Parameters<typeof announceQueued>
): Promise<void> {
  const { sessionId } = at;
  const known = await announceQueued(tx, at, messages);
  for (const { id, excerpt } of messages) {
    const stored = known.get(id);
    if (stored === undefined || stored.data.excerpt === excerpt) continue;
    await tx
      .update(events)
      .set({ data: { ...stored.data, excerpt } })
      .where(and(eq(events.sessionId, sessionId), eq(events.seq, stored.seq)));
  }
}
