/** The event log: rows in one order per session, and a coalesced wake-up for watchers. */
import { and, eq, sql } from "drizzle-orm";
import type { EventData, NewEvent, SessionEvent } from "./event.ts";
import type { Announcements } from "./announcements.ts";
import type { Queryable, Store } from "./db.ts";
import { streamChunks } from "./schema/index.ts";

/**
 * Wake-ups are collected for this long: NOTIFY takes a lock on the whole database at commit, and inside the writing
 * transaction it slowed a comparable system from 55,000 to 3,000 writes a second. Source: survey of durable engines, F9.
 */
const NOTIFY_GATHER_MS = 40;

export interface ChunkRow {
  readonly chunkType: EventData["llm:chunk"]["chunkType"];
  readonly text: string;
}

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
  await db.execute(sql`
    with c as (
      update cursors set event_seq = event_seq + ${list.length} where session_id = ${sessionId} returning event_seq
    )
    insert into events (session_id, seq, epoch, step, attempt, type, data)
    select ${sessionId}, c.event_seq - ${list.length} + t.place, ${epoch}, (t.e->>'step')::int, (t.e->>'attempt')::int, t.e->>'type', t.e->'data'
    from c, json_array_elements(${rows}::json) with ordinality as t(e, place)`);
}

/** Live pieces of an answer in flight. */
export interface Pieces {
  readonly sessionId: string;
  readonly epoch: number;
  readonly step: number;
  readonly attempt: number;
  readonly chunks: readonly ChunkRow[];
}

/** Rows are locked in a fixed order: two workers may have the same sessions if one was wrongly considered dead. */
const APPEND_CHUNKS = `
with asked as (
  select * from json_to_recordset($1::json) as t("sessionId" text, epoch int, step int, attempt int, chunks json)
), locked as (
  select session_id from cursors where session_id in (select "sessionId" from asked) order by session_id for no key update
), c as (
  update cursors set event_seq = event_seq + json_array_length(asked.chunks)
  from asked join locked on session_id = "sessionId"
  where cursors.session_id = "sessionId" and not exists (select 1 from stored_messages m
    where m.session_id = "sessionId" and m.epoch = asked.epoch and m.step = asked.step and m.slot = 'assistant')
  returning asked.*, event_seq - json_array_length(asked.chunks) as before
)
insert into stream_chunks (session_id, seq, epoch, step, attempt, chunk_type, text)
select "sessionId", before + t.place, epoch, step, attempt, t.chunk->>'chunkType', t.chunk->>'text'
from c, json_array_elements(c.chunks) with ordinality as t(chunk, place)`;

/**
 * Appends live pieces, which share the events' order. If a step's answer is already stored, its pieces come from a worker
 * that was considered dead, and are dropped.
 * @param answers at most one per session
 */
export async function appendChunks(store: Pick<Store, "pool">, answers: readonly Pieces[]): Promise<void> {
  await store.pool.query({ name: "append_chunks", text: APPEND_CHUNKS, values: [JSON.stringify(answers)] });
}

/** Drops pieces of steps whose answers are stored: a worker that was considered dead may have sent some later. */
export async function dropStoredChunks(db: Queryable, sessionId: string): Promise<void> {
  await db.execute(sql`delete from stream_chunks c where session_id = ${sessionId} and exists (
    select 1 from stored_messages m where m.session_id = c.session_id and m.step = c.step and m.slot = 'assistant')`);
}

/** Deletes the live pieces of a step, once its answer is stored. */
export async function dropChunks(db: Queryable, sessionId: string, step: number): Promise<void> {
  await db
    .delete(streamChunks)
    .where(and(eq(streamChunks.sessionId, sessionId), eq(streamChunks.step, step)));
}

interface EventRow extends Record<string, unknown> {
  readonly seq: string;
  readonly epoch: number;
  readonly step: number;
  readonly attempt: number;
  readonly type: string;
  readonly data: unknown;
  readonly at: string;
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
  const { rows } = await db.execute<EventRow>(sql`
    (select seq, epoch, step, attempt, type, data, to_json(at) #>> '{}' as at from events
      where session_id = ${sessionId} and seq > ${afterSeq} order by seq limit ${limit})
    union all
    (select seq, epoch, step, attempt, 'llm:chunk', json_build_object('chunkType', chunk_type, 'text', text),
      to_json(at) #>> '{}' from stream_chunks
      where session_id = ${sessionId} and seq > ${afterSeq} order by seq limit ${limit})
    order by seq limit ${limit}`);
  return rows.map(
    (row) =>
      ({
        ...row,
        seq: Number(row.seq),
        sessionId,
        at: new Date(row.at).toISOString(),
      }) as SessionEvent,
  );
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
  const { rows } = await db.execute<{ counted: string; isThere: boolean; before: string }>(sql`
    select c.event_seq as counted,
      exists(select 1 from events where session_id = ${sessionId} and seq = ${last?.seq ?? 0}
        and date_trunc('milliseconds', at) = ${at}::timestamptz) as "isThere",
      (select coalesce(max(seq), 0) from events where session_id = ${sessionId} and seq <= ${last?.seq ?? 0}
        and date_trunc('milliseconds', at) <= ${at}::timestamptz) as before
    from cursors c where c.session_id = ${sessionId}`);
  const [found] = rows;
  if (found === undefined || found.isThere) return undefined;
  if (last !== undefined) return Number(found.before);
  return Number(found.counted) < seq ? Number(found.counted) : undefined;
}

/** Wakes watchers. */
export interface Notifier {
  /** Notifies a session's watchers of new events: after a short delay, once for many calls, and never fails. */
  wake(sessionId: string): void;
  /** Whether the session may be watched: true also while that is unknown. */
  isWatched(sessionId: string): boolean;
  /** Calls back when a watch of the session begins. @returns a function that ends the subscription */
  onWatched(sessionId: string, begun: () => void): () => void;
  close(): void;
}

/** Creates a notifier that sends nothing for unwatched sessions. */
export function createNotifier(
  announcements: Pick<Announcements, "wake" | "isWatched" | "onWatched">,
): Notifier {
  const waiting = new Set<string>();
  let timer: NodeJS.Timeout | undefined;
  const flush = () => {
    timer = undefined;
    const ids = [...waiting];
    waiting.clear();
    // After a lost wake-up a watcher polls anyway, so the writer ignores an error.
    announcements.wake(ids).catch(() => undefined);
  };
  const { isWatched, onWatched } = announcements;
  return {
    wake(sessionId) {
      if (!isWatched(sessionId)) return;
      waiting.add(sessionId);
      timer ??= setTimeout(flush, NOTIFY_GATHER_MS);
    },
    isWatched,
    onWatched,
    close() {
      clearTimeout(timer);
    },
  };
}
