/**
 * The queue of people's messages: a row per message, from the moment it enters, announced to watchers with its row. Its order is that in
 * which runs received them. Delivered ones stay, so that they wait again after a reset.
 */
import { and, asc, count, eq, gt, isNull, lte, or, sql } from "drizzle-orm";
import type { UserPart } from "../contract/message.ts";
import {
  type Guidance,
  type QueuedMessage,
  toExcerpt,
  isStoredText,
  MAX_NAMED,
} from "../contract/guidance.ts";
import type { Queryable, Database } from "./db.ts";
import { blobId, loadBlobs } from "./blobs.ts";
import { guidance, events } from "./schema/index.ts";
import { equalsAny, excluded } from "./statements.ts";
import { appendEvents } from "./events.ts";

/** Condition for the messages that no run has delivered and no one has withdrawn. */
const isWaiting = (sessionId: string) =>
  and(eq(guidance.sessionId, sessionId), isNull(guidance.deliveredSequence), eq(guidance.dropped, false));

const IN_ORDER = [asc(guidance.dueAt), asc(guidance.ordinal)] as const;

/** So long from now, in the database's time. */
const inSeconds = (seconds: number) => sql<Date>`now() + make_interval(secs => ${seconds})`;

const rowOf = (sessionId: string, { id, parts, queuedAt, by }: Guidance) => ({
  sessionId,
  id,
  parts,
  queuedAt,
  author: by ?? null,
});

/** For a message whose signal does not come. Chosen: longer than a client waits for an answer before it sends a signal instead. */
const SIGNAL_SECONDS = 30;

/** Where an event belongs. */
interface EventPlace {
  readonly sessionId: string;
  readonly epoch: number;
  readonly step: number;
}

/**
 * Stores a message that a client is about to send, and announces it. Idempotent by its id.
 * @param items the message as the run will receive it
 * @param text its beginning is shown to people
 * @returns its place in the queue, from 1, and whether it entered only now, or a run has received it; undefined if it was delivered or
 * withdrawn
 */
export async function enterGuidance(
  tx: Queryable,
  at: EventPlace,
  items: readonly Guidance[],
  text: string,
): Promise<{ readonly position: number; readonly entry: "new" | "sent again" | "received" } | undefined> {
  const [first] = items;
  if (first === undefined) return undefined;
  const added = await tx
    .insert(guidance)
    .values(items.map((item) => ({ ...rowOf(at.sessionId, item), dueAt: inSeconds(SIGNAL_SECONDS) })))
    .onConflictDoNothing()
    .returning({ id: guidance.id });
  const waiting = await readPlaces(tx, at.sessionId);
  const index = waiting.findIndex(({ id }) => id === first.id);
  const waitingItem = waiting[index];
  if (waitingItem === undefined) return undefined;
  const position = index + 1;
  if (!added.some(({ id }) => id === first.id))
    return { position, entry: waitingItem.received ? "received" : "sent again" };
  await announce(tx, at, [messageOf(first, position, text)]);
  return { position, entry: "new" };
}

/** The messages that wait, in order. */
async function readPlaces(db: Queryable, sessionId: string, most = Number.MAX_SAFE_INTEGER) {
  const rows = await db
    .select({ id: guidance.id, received: guidance.received })
    .from(guidance)
    .where(isWaiting(sessionId))
    .orderBy(...IN_ORDER)
    .limit(most);
  return rows.filter(({ id }) => !isPiece(id));
}

/** The further items of a message that is too long for one. */
const isPiece = (id: string) => /#\d+$/.test(id);

const messageOf = ({ id, by }: Guidance, position: number, text: string): QueuedMessage => ({
  id,
  position,
  excerpt: toExcerpt([{ type: "text", text }]),
  by,
});

/** Beyond this many, messages are not announced one by one: a person may queue no more. */
const MAX_ANNOUNCED = MAX_NAMED;

async function announce(tx: Queryable, at: EventPlace, messages: readonly QueuedMessage[]): Promise<void> {
  const list = messages
    .filter(({ position }) => position <= MAX_ANNOUNCED)
    .map((data) => ({ type: "message:queued" as const, step: at.step, data }));
  await appendEvents(tx, at.sessionId, at.epoch, list);
}

/**
 * Stores messages that a run received, in their order. What a client had stored before is replaced by what the worker has cleaned: the
 * sender may not know all of the worker's secrets. Idempotent by their ids.
 * @param items cleaned
 * @returns those that entered only now, and those that a client had stored before
 */
export async function receiveGuidance(
  tx: Queryable,
  sessionId: string,
  items: readonly Guidance[],
): Promise<{ readonly entered: readonly Guidance[]; readonly mended: readonly Guidance[] }> {
  const receivedById = await knownGuidance(
    tx,
    sessionId,
    items.map(({ id }) => id),
  );
  const changed = await insertItems(tx, sessionId, items, true);
  return {
    entered: changed.filter(({ id }) => !receivedById.has(id)),
    mended: changed.filter(({ id }) => receivedById.has(id)),
  };
}

/**
 * Messages without a signal wait from now on: a follower's, and those of which histories tell and whose run ended before. One that a
 * worker has received is left. Idempotent by their ids.
 */
export async function recoverGuidance(
  tx: Queryable,
  at: EventPlace,
  items: readonly Guidance[],
): Promise<void> {
  const ids = items.map(({ id }) => id);
  const receivedById = await knownGuidance(tx, at.sessionId, ids);
  const changed = await insertItems(tx, at.sessionId, items, false);
  const entered = changed.filter(({ id }) => !receivedById.has(id));
  await announceEntered(tx, at, entered, await beginningsOf(tx, entered));
}

/** @returns those that had no row, or one that no worker had received */
async function insertItems(
  tx: Queryable,
  sessionId: string,
  items: readonly Guidance[],
  received: boolean,
): Promise<readonly Guidance[]> {
  // Several histories may have the same message, and two ids may be the same after cleaning.
  const once = [...new Map(items.toReversed().map((item) => [item.id, item])).values()].toReversed();
  const changed: Guidance[] = [];
  for (let from = 0; from < once.length; from += ROWS_AT_ONCE)
    changed.push(...(await insertSome(tx, sessionId, once.slice(from, from + ROWS_AT_ONCE), received)));
  return changed;
}

/** A statement takes 65,535 values. */
const ROWS_AT_ONCE = 1_000;

async function insertSome(
  ...[tx, sessionId, items, received]: Parameters<typeof insertItems>
): ReturnType<typeof insertItems> {
  const rows = items.map((item, index) => ({
    ...rowOf(sessionId, item),
    received,
    dueAt: inSeconds(index / 1_000_000),
  }));
  const { parts, queuedAt, dueAt } = guidance;
  const changed = await tx
    .insert(guidance)
    .values(rows)
    .onConflictDoUpdate({
      target: [guidance.sessionId, guidance.id],
      set: {
        dueAt: excluded(dueAt),
        queuedAt: excluded(queuedAt),
        ...(received ? { received, parts: excluded(parts) } : {}),
      },
      setWhere: eq(guidance.received, false),
    })
    .returning({ id: guidance.id });
  const ids = new Set(changed.map(({ id }) => id));
  return items.filter(({ id }) => ids.has(id));
}

/** Which of these messages have rows: by id, whether they still wait. */
export async function knownGuidance(
  db: Queryable,
  sessionId: string,
  ids: readonly string[],
): Promise<ReadonlyMap<string, boolean>> {
  if (ids.length === 0) return new Map();
  const rows = await db
    .select({ id: guidance.id, sequence: guidance.deliveredSequence, dropped: guidance.dropped })
    .from(guidance)
    .where(and(eq(guidance.sessionId, sessionId), equalsAny(guidance.id, ids)));
  return new Map(rows.map(({ id, sequence, dropped }) => [id, sequence === null && !dropped]));
}

/** Announces messages that a worker has received; the excerpts that clients announced are replaced by its own, which are masked. */
export async function announceReceived(
  tx: Queryable,
  at: EventPlace,
  { entered, mended }: Awaited<ReturnType<typeof receiveGuidance>>,
  clean: (text: string) => string,
): Promise<void> {
  const texts = await beginningsOf(tx, [...entered, ...mended], clean);
  await announceEntered(tx, at, entered, texts);
  for (const { id } of mended.filter(isWhole)) await mendExcerpt(tx, at.sessionId, id, texts.get(id) ?? "");
}

const isWhole = ({ id }: Guidance) => !isPiece(id);

async function announceEntered(
  tx: Queryable,
  at: EventPlace,
  entered: readonly Guidance[],
  texts: ReadonlyMap<string, string>,
): Promise<void> {
  if (!entered.some(isWhole)) return;
  const waiting = await readPlaces(tx, at.sessionId, 10 * MAX_ANNOUNCED);
  const positions = new Map(waiting.map(({ id }, index) => [id, index + 1]));
  const positionOf = (id: string) => positions.get(id) ?? MAX_ANNOUNCED + 1;
  const all = entered.filter(isWhole);
  await announce(
    tx,
    at,
    all.map((item) => messageOf(item, positionOf(item.id), texts.get(item.id) ?? "")),
  );
}

async function mendExcerpt(tx: Queryable, sessionId: string, id: string, text: string): Promise<void> {
  const excerpt = toExcerpt([{ type: "text", text }]);
  const [stored] = await tx
    .select({ seq: events.seq, data: sql<QueuedMessage>`${events.data}` })
    .from(events)
    .where(
      // The type not as a parameter: the index has only these.
      and(
        eq(events.sessionId, sessionId),
        sql`${events.type} = 'message:queued'`,
        eq(sql`${events.data}->>'id'`, id),
      ),
    );
  if (stored === undefined || stored.data.excerpt === excerpt) return;
  await tx
    .update(events)
    .set({ data: { ...stored.data, excerpt } })
    .where(and(eq(events.sessionId, sessionId), eq(events.seq, stored.seq)));
}

/** A message's words for people, by id; of text that is stored as a blob, the blob's. Cleaned before it is cut. */
async function beginningsOf(
  db: Queryable,
  items: readonly Pick<Guidance, "id" | "parts">[],
  clean: (text: string) => string = (text) => text,
): Promise<ReadonlyMap<string, string>> {
  const blobOf = (part: UserPart) => (isStoredText(part) ? blobId(part) : undefined);
  const ids = items.flatMap(({ parts }) => parts.map(blobOf)).filter((id) => id !== undefined);
  const blobs = await loadBlobs(db, [...new Set(ids)]);
  const toText = (part: UserPart) => {
    if (part.type === "text") return part.text;
    const bytes = blobs.get(blobOf(part) ?? "");
    return bytes === undefined
      ? `[${part.filename ?? part.mediaType}]`
      : clean(new TextDecoder().decode(bytes));
  };
  return new Map(items.map(({ id, parts }) => [id, parts.map(toText).join("\n")]));
}

export interface QueuedGuidance extends Guidance {
  /** It is cleaned. */
  readonly received: boolean;
  readonly dueAt: Date;
}

/**
 * Messages that wait for the next step, oldest first, at most `limit`.
 * @param lock by a transaction that delivers them: no sender can withdraw one meanwhile
 */
export async function waitingGuidance(
  db: Queryable,
  sessionId: string,
  limit: number,
  lock?: "lock",
): Promise<QueuedGuidance[]> {
  const query = db
    .select()
    .from(guidance)
    .where(and(isWaiting(sessionId), lte(guidance.dueAt, inSeconds(0))))
    .orderBy(...IN_ORDER)
    .limit(limit);
  return (await (lock ? query.for("update") : query)).map(asGuidance);
}

const asGuidance = ({ id, parts, queuedAt, author, received, dueAt }: typeof guidance.$inferSelect) => ({
  id,
  parts: parts as UserPart[],
  queuedAt,
  received,
  dueAt,
  by: author ?? undefined,
});

/**
 * Withdraws a message that no step has, whether or not it has a row.
 * @returns false if a step has it
 */
export async function dropGuidance(db: Queryable, sessionId: string, id: string): Promise<boolean> {
  const row = { sessionId, id, parts: [], queuedAt: new Date().toISOString(), dropped: true };
  const { rowCount } = await db
    .insert(guidance)
    .values(row)
    .onConflictDoUpdate({
      target: [guidance.sessionId, guidance.id],
      set: { dropped: true },
      setWhere: isNull(guidance.deliveredSequence),
    });
  return (rowCount ?? 0) > 0;
}

/** Records which message of the transcript contains these. @param items cleaned */
export async function markDelivered(
  tx: Queryable,
  sessionId: string,
  items: readonly QueuedGuidance[],
  sequence: number,
): Promise<void> {
  const isOne = (...ids: readonly string[]) =>
    and(eq(guidance.sessionId, sessionId), equalsAny(guidance.id, ids));
  await tx
    .update(guidance)
    .set({ deliveredSequence: sequence })
    .where(isOne(...items.map(({ id }) => id)));
  for (const { id, parts } of items.filter(({ received }) => !received))
    await tx.update(guidance).set({ parts, received: true }).where(isOne(id));
}

/**
 * Keeps messages that were sent after this time from being delivered again by a later reset.
 * @param after ISO time, by Temporal's clock
 */
export async function dropSaidAfter(db: Queryable, sessionId: string, after: string): Promise<void> {
  // What no worker has received was sent after all that workers did.
  await db
    .update(guidance)
    .set({ dropped: true })
    .where(
      and(
        eq(guidance.sessionId, sessionId),
        or(
          gt(guidance.queuedAt, after),
          and(eq(guidance.received, false), isNull(guidance.deliveredSequence)),
        ),
      ),
    );
}

export interface ShownMessage {
  readonly id: string;
  readonly text: string;
  readonly queuedAt: string;
}

export async function countWaiting(db: Database, sessionId: string): Promise<number> {
  const [row] = await db.select({ waiting: count() }).from(guidance).where(isWaiting(sessionId));
  return row?.waiting ?? 0;
}

/** The messages that wait, oldest first. */
export async function readWaiting(db: Database, sessionId: string): Promise<ShownMessage[]> {
  const rows = await db
    .select({ id: guidance.id, parts: guidance.parts, queuedAt: guidance.queuedAt })
    .from(guidance)
    .where(isWaiting(sessionId))
    .orderBy(...IN_ORDER);
  const list = rows.map((row) => ({ ...row, parts: row.parts as UserPart[] }));
  const texts = await beginningsOf(db, list);
  return list.map(({ id, queuedAt }) => ({ id, text: texts.get(id) ?? "", queuedAt }));
}
