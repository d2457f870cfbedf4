/**
 * `message:queued`: a message waits. Stored once, by its sender or by the first worker that sees it. A worker also mends what the
 * sender stored, because the sender does not know all secrets.
 */
import { and, eq, sql } from "drizzle-orm";
import type { QueuedMessage } from "../contract/guidance.ts";
import type { Queryable } from "./db.ts";
import { appendEvents } from "./events.ts";
import { events } from "./schema/index.ts";

/** Beyond this many, messages are not announced one by one: a person may queue no more. */
const MAX_ANNOUNCED = 100;

interface Announced extends Record<string, unknown> {
  readonly id: string;
  readonly seq: string;
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
  await tx.execute(sql`select 1 from cursors where session_id = ${at.sessionId} for update`);
  const ids = JSON.stringify(list.map(({ id }) => id));
  const { rows } = await tx.execute<Announced>(sql`
    select data->>'id' as id, seq, data from events where session_id = ${at.sessionId} and type = 'message:queued'
    and data->>'id' in (select json_array_elements_text(${ids}::json))`);
  const announced = new Map(rows.map((row) => [row.id, row]));
  await appendEvents(
    tx,
    at.sessionId,
    at.epoch,
    list
      .filter(({ id }) => !announced.has(id))
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
      .where(and(eq(events.sessionId, sessionId), eq(events.seq, Number(stored.seq))));
  }
}
