/** `message:queued`: a message waits. Stored once, by its sender or by the first worker that sees it. */
import { sql } from "drizzle-orm";
import type { QueuedMessage } from "../contract/queued-message.ts";
import type { Queryable } from "./db.ts";
import { appendEvents } from "./events.ts";

/** Beyond this many, messages are not announced one by one: a person may queue no more. */
const MAX_ANNOUNCED = 100;

/** @param tx a transaction: the check and the events must be atomic, under the lock of the session's event counter */
export async function announceQueued(
  tx: Queryable,
  at: { readonly sessionId: string; readonly epoch: number; readonly step: number },
  messages: readonly QueuedMessage[],
): Promise<void> {
  const list = messages.slice(0, MAX_ANNOUNCED);
  if (list.length === 0) return;
  await tx.execute(sql`select 1 from cursors where session_id = ${at.sessionId} for update`);
  const ids = JSON.stringify(list.map(({ id }) => id));
  const { rows } = await tx.execute<{ id: string }>(sql`
    select data->>'id' as id from events where session_id = ${at.sessionId} and type = 'message:queued'
    and data->>'id' in (select json_array_elements_text(${ids}::json))`);
  const announced = new Set(rows.map(({ id }) => id));
  await appendEvents(
    tx,
    at.sessionId,
    at.epoch,
    list
      .filter(({ id }) => !announced.has(id))
      .map((data) => ({ type: "message:queued" as const, step: at.step, data })),
  );
}
