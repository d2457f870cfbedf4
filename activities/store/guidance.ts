/**
 * People's messages: announced to watchers once, parked while no run can accept them, identified by their ids, delivered once, and
 * again after a reset. A worker also mends what the sender stored, because the sender does not know all secrets.
 */
import { and, asc, eq, gt, inArray, isNull, sql } from "drizzle-orm";
import type { UserPart } from "../contract/message.ts";
import type { Guidance, QueuedMessage } from "../contract/guidance.ts";
import type { Queryable, Database } from "./db.ts";
import { isLive } from "./live-line.ts";
import { guidance, storedMessages, cursors, events } from "./schema/index.ts";
import { equalsAny, excluded } from "./statements.ts";
import type { MessageMeta } from "./transcript.ts";
import { appendEvents } from "./events.ts";
import type { EventData, EventType } from "./event.ts";

/** Condition for the messages that no run has delivered and no one has withdrawn. */
const isParked = (sessionId: string) =>
  and(eq(guidance.sessionId, sessionId), isNull(guidance.deliveredSequence), eq(guidance.dropped, false));

/** Keeps messages until a run delivers them. Idempotent by client id: a delivered or dropped message stays so. */
export async function parkGuidance(
  db: Queryable,
  sessionId: string,
  items: readonly Guidance[],
): Promise<void> {
  if (items.length === 0) return;
  await db
    .insert(guidance)
    .values(items.map((item) => rowOf(sessionId, item)))
    .onConflictDoNothing();
}

const rowOf = (sessionId: string, { id, parts, queuedAt, by }: Guidance) => ({
  sessionId,
  id,
  parts,
  queuedAt,
  author: by ?? null,
});

/** Parked messages that were not delivered, oldest first, at most `limit`. */
export async function parkedGuidance(db: Queryable, sessionId: string, limit: number): Promise<Guidance[]> {
  const rows = await db
    .select()
    .from(guidance)
    .where(isParked(sessionId))
    .orderBy(asc(guidance.ordinal))
    .limit(limit);
  return rows.map(({ id, parts, queuedAt, author }) => ({
    id,
    parts: parts as UserPart[],
    queuedAt,
    by: author ?? undefined,
  }));
}

export async function countParked(db: Queryable, sessionId: string): Promise<number> {
  return db.$count(guidance, isParked(sessionId));
}

/** Withdraws a parked message, unless a step already has it. @returns false if it is not parked */
export async function dropParked(db: Queryable, sessionId: string, id: string): Promise<boolean> {
  const { rowCount } = await db
    .update(guidance)
    .set({ dropped: true })
    .where(and(isParked(sessionId), eq(guidance.id, id)));
  return (rowCount ?? 0) > 0;
}

/** Which of the messages with these ids the live transcript already has, and where: id to sequence. */
export async function deliveredGuidance(
  db: Queryable,
  sessionId: string,
  ids: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  if (ids.length === 0) return new Map();
  const carried = sql<string>`carried.value`;
  const rows = await db
    .select({ id: carried, sequence: storedMessages.sequence })
    .from(storedMessages)
    .crossJoinLateral(sql`json_array_elements_text(${storedMessages.meta}->'ids') as carried(value)`)
    .where(
      and(isLive(storedMessages, sessionId), eq(storedMessages.kind, "guidance"), equalsAny(carried, ids)),
    );
  return new Map(rows.map(({ id, sequence }) => [id, sequence]));
}

export interface StepSoFar {
  /** The slot for the step's next message from a person. */
  readonly slot: string;
  /** Tokens of the messages that the step already has, as after an interrupt. */
  readonly tokens: number;
  /** The step had no room for all waiting messages. */
  readonly isFull: boolean;
  /** The model has answered: later messages belong to the next step. */
  readonly isAnswered: boolean;
}

/** The people's messages that a repeated step already has. */
export async function stepSoFar(
  db: Queryable,
  { sessionId, epoch }: { readonly sessionId: string; readonly epoch: number },
  step: number,
): Promise<StepSoFar> {
  const rows = await db
    .select({ kind: storedMessages.kind, tokens: storedMessages.tokenCount, meta: storedMessages.meta })
    .from(storedMessages)
    .where(
      and(
        eq(storedMessages.sessionId, sessionId),
        eq(storedMessages.epoch, epoch),
        eq(storedMessages.step, step),
        inArray(storedMessages.kind, ["guidance", "answer"]),
      ),
    );
  const said = rows.filter(({ kind }) => kind === "guidance");
  return {
    slot: said.length === 0 ? "user" : `user:${said.length}`,
    tokens: said.reduce((sum, row) => sum + row.tokens, 0),
    isFull: said.some((row) => (row.meta as MessageMeta | null)?.leftSome === true),
    isAnswered: said.length < rows.length,
  };
}

/** Records which message of the transcript contains these. */
export async function keepDelivered(
  db: Queryable,
  sessionId: string,
  items: readonly Guidance[],
  sequence: number,
): Promise<void> {
  if (items.length === 0) return;
  await db
    .insert(guidance)
    .values(items.map((item) => ({ ...rowOf(sessionId, item), deliveredSequence: sequence })))
    .onConflictDoUpdate({
      target: [guidance.sessionId, guidance.id],
      // Store the text that the worker has sanitized: the sender may not know all of the worker's secrets.
      set: { deliveredSequence: sequence, parts: excluded(guidance.parts) },
    });
}

/**
 * Keeps messages that were sent after this time from being delivered again by a later reset.
 * @param after ISO time, by Temporal's clock
 */
export async function dropSaidAfter(db: Queryable, sessionId: string, after: string): Promise<void> {
  await db
    .update(guidance)
    .set({ dropped: true })
    .where(and(eq(guidance.sessionId, sessionId), gt(guidance.queuedAt, after)));
}

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
        equalsAny(
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
