/**
 * The event log: rows in one order per session. What is appended wakes the session's watchers, once it is committed; nothing else does
 * (`test/architecture/wakes.test.ts`).
 */
import { and, asc, eq, exists, gt, lte, max, sql, type SQL, type SQLWrapper } from "drizzle-orm";
import { unionAll } from "drizzle-orm/pg-core";
import type { EventData, NewEvent, SessionEvent } from "./event.ts";
import type { Queryable, Store } from "./db.ts";
import type pg from "pg";
import { cursors, events, storedMessages, streamChunks } from "./schema/index.ts";
import { ANY, assigned, composed, insertFrom, named, part } from "./statements.ts";

export interface ChunkRow {
  readonly chunkType: EventData["llm:chunk"]["chunkType"];
  readonly text: string;
}

const parameter = (name: string) => sql.placeholder(name);

/** Inserts `events` with the numbers that follow the `seq_before` of `counted`; a value can be read from `t.event`. */
export const insertLog = (
  counted: SQL,
  location: Readonly<Record<"epoch" | "step" | "attempt", SQLWrapper>>,
): SQL =>
  insertFrom(
    events,
    {
      ...location,
      sessionId: parameter("sessionId"),
      seq: sql`seq_before + t.place`,
      type: sql`t.event->>'type'`,
      data: sql`t.event->'data'`,
    },
    sql`from ${counted}, json_array_elements(${parameter("events")}::json) with ordinality as t(event, place)`,
  );

/**
 * Appends events in order. One statement: the counter's row lock is held until commit, so a reader that has seen
 * seq n has seen all before it.
 */
export async function appendEvents(
  db: Queryable,
  sessionId: string,
  epoch: number,
  list: readonly NewEvent[],
): Promise<void> {
  if (list.length === 0) return;
  const rows = JSON.stringify(
    list.map((e) => ({ step: e.step, attempt: e.attempt ?? 1, type: e.type, data: e.data })),
  );
  await db.execute(append({ sessionId, epoch, events: rows, count: list.length }));
  db.appended(sessionId);
}

/** As `named`, for a statement that appends to the log of sessions itself. */
export function appending(
  name: string,
  statement: SQL,
): (
  store: Pick<Store, "db" | "pool">,
  sessionIds: readonly string[],
  values: Readonly<Record<string, unknown>>,
) => Promise<pg.QueryResult> {
  const send = named(name, statement);
  return async ({ db, pool }, sessionIds, values) => {
    const result = await send(pool, values);
    if (result.rowCount !== 0) for (const id of sessionIds) db.appended(id);
    return result;
  };
}

const append = composed(sql`
  with counted as (
    update ${cursors} set ${assigned([cursors.eventSeq, sql`${cursors.eventSeq} + ${parameter("count")}`])}
    where ${cursors.sessionId} = ${parameter("sessionId")} returning ${cursors.eventSeq} - ${parameter("count")} as seq_before
  )
  ${insertLog(sql`counted`, {
    epoch: parameter("epoch"),
    step: sql`(t.event->>'step')::int`,
    attempt: sql`(t.event->>'attempt')::int`,
  })}`);

/** Live pieces of an answer in flight. */
export interface Pieces {
  readonly sessionId: string;
  readonly epoch: number;
  readonly step: number;
  readonly attempt: number;
  readonly chunks: readonly ChunkRow[];
}

/** Rows are locked in a fixed order: two workers may have the same sessions if one was wrongly considered dead. */
const sendChunks = appending(
  "append_chunks",
  sql`
with asked("of", in_epoch, in_step, try, chunks) as (
  select p->>'sessionId', (p->>'epoch')::int, (p->>'step')::int, (p->>'attempt')::int, p->'chunks'
  from json_array_elements(${sql.placeholder("answers")}::json) as p
), locked as (
  select ${cursors.sessionId} as held from ${cursors} where ${cursors.sessionId} in (select "of" from asked)
  order by ${cursors.sessionId} for no key update
), counted as (
  update ${cursors} set ${assigned([cursors.eventSeq, sql`${cursors.eventSeq} + json_array_length(asked.chunks)`])}
  from asked join locked on held = asked."of"
  where ${cursors.sessionId} = asked."of" and not exists (select 1 from ${storedMessages}
    where ${storedMessages.sessionId} = asked."of" and ${storedMessages.epoch} = in_epoch and ${storedMessages.step} = in_step
      and ${storedMessages.slot} = 'assistant')
  returning asked.*, ${cursors.eventSeq} - json_array_length(asked.chunks) as before
)
${insertFrom(
  streamChunks,
  {
    sessionId: sql`counted."of"`,
    seq: sql`before + t.place`,
    epoch: sql`in_epoch`,
    step: sql`in_step`,
    attempt: sql`try`,
    chunkType: sql`t.chunk->>'chunkType'`,
    text: sql`t.chunk->>'text'`,
  },
  sql`from counted, json_array_elements(counted.chunks) with ordinality as t(chunk, place)`,
)}`,
);

/**
 * Appends live pieces, which share the events' order. If a step's answer is already stored, its pieces come from a worker
 * that was considered dead, and are dropped.
 * @param answers at most one per session
 */
export async function appendChunks(
  store: Pick<Store, "db" | "pool">,
  answers: readonly Pieces[],
): Promise<void> {
  const sessionIds = answers.map((answer) => answer.sessionId);
  await sendChunks(store, sessionIds, { answers: JSON.stringify(answers) });
}

/** Drops pieces of steps whose answers are stored: a worker that was considered dead may have sent some later. */
export async function dropStoredChunks(db: Queryable, sessionId: string): Promise<void> {
  const answer = part
    .select(ANY)
    .from(storedMessages)
    .where(
      and(
        eq(storedMessages.sessionId, streamChunks.sessionId),
        eq(storedMessages.step, streamChunks.step),
        eq(storedMessages.slot, "assistant"),
      ),
    );
  await db.delete(streamChunks).where(and(eq(streamChunks.sessionId, sessionId), exists(answer)));
}

/** Deletes the live pieces of a step, once its answer is stored. */
export async function dropChunks(db: Queryable, sessionId: string, step: number): Promise<void> {
  await db
    .delete(streamChunks)
    .where(and(eq(streamChunks.sessionId, sessionId), eq(streamChunks.step, step)));
}

/**
 * Events and live pieces after `afterSeq` in order, at most `limit`. One statement, so one snapshot: with two statements,
 * the second could show seq n + 1 although the first ran too early to see n, which would then be skipped forever.
 */
export async function readEvents(
  db: Queryable,
  sessionId: string,
  afterSeq: number,
  limit = 1_000,
): Promise<SessionEvent[]> {
  const { seq, epoch, step, attempt, type, data, at } = events;
  const stored = db
    .select({ seq, epoch, step, attempt, type, data, at })
    .from(events)
    .where(and(eq(events.sessionId, sessionId), gt(seq, afterSeq)))
    .orderBy(asc(seq))
    .limit(limit);
  const pieces = db
    .select({
      seq: streamChunks.seq,
      epoch: streamChunks.epoch,
      step: streamChunks.step,
      attempt: streamChunks.attempt,
      type: sql<string>`'llm:chunk'`,
      data: sql<unknown>`json_build_object('chunkType', ${streamChunks.chunkType}, 'text', ${streamChunks.text})`,
      at: streamChunks.at,
    })
    .from(streamChunks)
    .where(and(eq(streamChunks.sessionId, sessionId), gt(streamChunks.seq, afterSeq)))
    .orderBy(asc(streamChunks.seq))
    .limit(limit);
  const allRows = unionAll(stored, pieces).as("both");
  const rows = await db.select().from(allRows).orderBy(asc(allRows.seq)).limit(limit);
  return rows.map((row) => ({ ...row, sessionId, at: row.at.toISOString() }) as SessionEvent);
}

/** How far a watcher has seen, and the last event among it that is kept: pieces of answers are not. */
export interface Seen {
  readonly seq: number;
  readonly last: Pick<SessionEvent, "seq" | "at"> | undefined;
}

/**
 * For a watcher whose database may have been restored from a copy that is older than what it has seen. Numbers behind that copy are given
 * again, so the last event is compared with what now has its number.
 * @returns the number behind which the watcher has not seen what there is; undefined if it has seen what precedes its place
 */
export async function restoredTo(
  db: Queryable,
  sessionId: string,
  { seq, last }: Seen,
): Promise<number | undefined> {
  const at = last?.at ?? null;
  const shownAt = sql`date_trunc('milliseconds', ${events.at})`;
  const upTo = and(eq(events.sessionId, sessionId), lte(events.seq, last?.seq ?? 0));
  const same = part
    .select(ANY)
    .from(events)
    .where(and(upTo, eq(events.seq, last?.seq ?? 0), sql`${shownAt} = ${at}::timestamptz`));
  const before = part
    .select({ seq: max(events.seq) })
    .from(events)
    .where(and(upTo, sql`${shownAt} <= ${at}::timestamptz`));
  const [row] = await db
    .select({
      counted: cursors.eventSeq,
      isThere: sql<boolean>`${exists(same)}`,
      before: sql<number>`coalesce(${before}, 0)`.mapWith(Number),
    })
    .from(cursors)
    .where(eq(cursors.sessionId, sessionId));
  if (row === undefined || row.isThere) return undefined;
  if (last !== undefined) return row.before;
  return row.counted < seq ? row.counted : undefined;
}
