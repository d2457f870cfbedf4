/** People's messages that no step has delivered yet, as far as the rows show. Writes nothing. */
import { and, asc, eq, inArray } from "drizzle-orm";
import type { Database } from "./db.ts";
import type { EventData, EventType } from "./event.ts";
import { isParked } from "./guidance.ts";
import { events, guidance } from "./schema/index.ts";

export interface WaitingMessage {
  readonly id: string;
  readonly text: string;
  readonly queuedAt: string;
}

/** Messages that wait, as far as the rows show: those announced as queued and not yet delivered, and those parked. */
export async function readWaiting(db: Database, sessionId: string): Promise<WaitingMessage[]> {
  const news: readonly EventType[] = ["message:queued", "message:dequeued", "message:withdrawn"];
  const announced = await db
    .select({ type: events.type, data: events.data, at: events.at })
    .from(events)
    .where(and(eq(events.sessionId, sessionId), inArray(events.type, news)))
    .orderBy(asc(events.seq));
  const waiting = new Map<string, WaitingMessage>();
  // The sender announces afterwards, so a quick step may have delivered a message before its announcement.
  const taken = new Set(
    announced.flatMap(({ type, data }) => {
      if (type === "message:withdrawn") return [(data as EventData["message:withdrawn"]).id];
      return type === "message:dequeued" ? (data as EventData["message:dequeued"]).ids : [];
    }),
  );
  for (const { type, data, at } of announced) {
    if (type !== "message:queued") continue;
    const { id, excerpt } = data as EventData["message:queued"];
    if (!taken.has(id)) waiting.set(id, { id, text: excerpt, queuedAt: at.toISOString() });
  }
  // Messages kept in Postgres are older than those that only a run has so far, and their rows are more reliable.
  const [known, parked] = await Promise.all([
    db
      .select({ id: guidance.id })
      .from(guidance)
      .where(and(eq(guidance.sessionId, sessionId), inArray(guidance.id, [...waiting.keys()]))),
    readParked(db, sessionId),
  ]);
  for (const { id } of known) waiting.delete(id);
  return [...parked, ...waiting.values()];
}

/** Messages that wait in Postgres because no run has them in memory, oldest first. */
export async function readParked(db: Database, sessionId: string): Promise<WaitingMessage[]> {
  const rows = await db
    .select({ id: guidance.id, parts: guidance.parts, queuedAt: guidance.queuedAt })
    .from(guidance)
    .where(isParked(sessionId))
    .orderBy(asc(guidance.ordinal));
  return rows.map(({ id, parts, queuedAt }) => ({ id, text: textOf(parts), queuedAt }));
}

/** Whether a message with this id was kept: delivered, waiting or dropped. */
export async function isKnownMessage(db: Database, sessionId: string, id: string): Promise<boolean> {
  const rows = await db
    .select({ id: guidance.id })
    .from(guidance)
    .where(and(eq(guidance.sessionId, sessionId), eq(guidance.id, id)));
  return rows.length > 0;
}

function textOf(parts: unknown): string {
  if (!Array.isArray(parts)) return "";
  return parts
    .map((part: { type?: string; text?: string; mediaType?: string }) =>
      part.type === "text" ? (part.text ?? "") : `[${part.mediaType ?? "file"}]`,
    )
    .join("\n");
}
