/** The transcript: rows of the live line, and the one transaction in which a step's answer is stored. */
import { and, desc, eq, isNull, sql } from "drizzle-orm";
import type pg from "pg";
import { MAX_HEAD_MESSAGES } from "../context/boundary.ts";
import type { AssistantPart, Message, MessageKind, StoredMessage, ToolCallPart } from "../context/message.ts";
import { dropChunks } from "./events.ts";
import type { Database, Queryable } from "./db.ts";
import { cursors, messages, sessions } from "./schema.ts";
import { keepSeen, seenRows, type SeenRow } from "./seen-rows.ts";

/** What a row remembers beside its content. */
export interface MessageMeta {
  readonly usage?: { readonly input: number; readonly output: number } | undefined;
  readonly finish?: string;
  /** Of an answer: the model that gave it. */
  readonly model?: string;
  /** Of coalesced guidance. */
  readonly ids?: readonly string[];
  readonly firstQueuedAt?: string;
  readonly lastQueuedAt?: string;
  /** More waited than the step had room for. */
  readonly leftSome?: boolean;
}

const live = (sessionId: string) => and(eq(messages.sessionId, sessionId), isNull(messages.supersededEpoch));

type Row = typeof messages.$inferSelect;

function toStored(row: Row): StoredMessage {
  const meta = (row.meta ?? {}) as MessageMeta;
  return {
    role: row.role,
    content: row.content,
    sequence: row.sequence,
    position: row.position,
    epoch: row.epoch,
    step: row.step,
    slot: row.slot,
    kind: row.kind as MessageKind,
    tokens: row.tokenCount,
    compactedRound: row.compactedRound ?? undefined,
    prunedStep: row.prunedStep ?? undefined,
    ...(meta.usage ? { usage: meta.usage } : {}),
    ...(meta.model === undefined ? {} : { model: meta.model }),
  } as StoredMessage;
}

/** Bare texts, parsed below: the driver's own conversions and an object a row made the load three times slower (measured). */
const AS_TEXT = { getTypeParser: () => (value: string) => value };
/** What never changes of a row beside its content, in words without blanks, and the life of the server that says so. */
const FACTS = `concat_ws(' ', role, kind, slot, sequence, position, epoch, step, token_count, pg_postmaster_start_time())`;
/** Above the highest id that was seen, or all where another server gave that. */
const IS_NEW = "(id > $2 or pg_postmaster_start_time() is distinct from $3::timestamptz)";
const COLUMNS = `id, case when ${IS_NEW} then content end, case when ${IS_NEW} then ${FACTS} end, position, compacted_round,
  pruned_step, case when kind = 'answer' then meta end`;
const IN_VIEW = "session_id = $1 and superseded_epoch is null and is_compacted = false";
/** Rows at the beginning among which middle removal may have kept answers and results, the task's with them. */
const HEAD_ROWS = MAX_HEAD_MESSAGES + 1;
/** Behind the newest summary everything is in view; in front of it only what a person said and the head. So the rows are
 * found without an index over the marks, which a round would have to rewrite for each of them.
 */
const LOAD_VIEW = `with edge as (
    select coalesce(max(position), 0) as at from messages where ${IN_VIEW} and kind = 'summary'
  )
  select ${COLUMNS} from messages where ${IN_VIEW} and position >= (select at from edge)
  union all
  select ${COLUMNS} from messages where ${IN_VIEW} and role = 'user' and position < (select at from edge)
  union all
  select ${COLUMNS} from (
    select * from messages where session_id = $1 and superseded_epoch is null order by position limit ${HEAD_ROWS}
  ) head where ${IN_VIEW} and role <> 'user' and position < (select at from edge)
  order by position`;

const LOAD_ROWS = `select id, content, ${FACTS} from messages where session_id = $1 and id = any($2::bigint[])`;

type Texts = readonly (string | null)[];

/**
 * What the model sees: rows that are neither compacted nor superseded, in the view's order. O(active rows), and of what
 * never changes only what this process has not read before.
 */
export async function loadView(db: Pick<Database, "$client">, sessionId: string): Promise<StoredMessage[]> {
  const pool = db.$client;
  const ask = async (name: string, text: string, values: unknown[]): Promise<Texts[]> => {
    const types = AS_TEXT as unknown as pg.CustomTypesConfig;
    return (await pool.query<string[]>({ name, text, values, rowMode: "array", types })).rows;
  };
  const before = seenRows(pool, sessionId);
  const rows = await ask("load_view", LOAD_VIEW, [sessionId, highest(before.byId), before.serverStart]);
  const missing = rows.flatMap(([id, content]) =>
    content === null && !before.byId.has(Number(id)) ? [id] : [],
  );
  // Stored by a transaction that began earlier and ended later, or in view again.
  const late =
    missing.length === 0
      ? undefined
      : new Map((await ask("load_rows", LOAD_ROWS, [sessionId, missing])).map((row) => [row[0], row]));
  let { serverStart } = before;
  const byId = new Map<number, SeenRow>();
  for (const row of rows) {
    const id = Number(row[0]);
    const marks = { compacted: row[4], pruned: row[5], meta: row[6] };
    const [, content, facts] = row[1] === null ? (late?.get(row[0]) ?? []) : row;
    if (typeof content === "string" && typeof facts === "string") {
      if (byId.size === 0) serverStart = serverStartOf(facts);
      byId.set(id, readRow(facts, content, marks));
    } else {
      const seen = before.byId.get(id) as SeenRow;
      byId.set(id, seen.marks === keyOf(marks) ? seen : markedAnew(seen, marks));
    }
  }
  keepSeen(pool, sessionId, { serverStart, byId });
  return Array.from(byId.values(), (row) => row.message);
}

function highest(contents: ReadonlyMap<number, unknown>): number {
  let id = 0;
  for (const each of contents.keys()) if (each > id) id = each;
  return id;
}

/** What may change of a row: its marks, and its bill, which an undone round takes away. */
type Marks = Readonly<Record<"compacted" | "pruned" | "meta", string | null | undefined>>;

function keyOf({ compacted, pruned, meta }: Marks): string {
  return `${compacted} ${pruned} ${meta}`;
}

function serverStartOf(facts: string): string {
  return facts.split(" ").slice(8).join(" ");
}

function readRow(facts: string, content: string, marks: Marks): SeenRow {
  const [role, kind, slot, sequence, position, epoch, step, tokens] = facts.split(" ", 8);
  const { usage, model } = metaOf(marks);
  const message = {
    role,
    content: JSON.parse(content),
    sequence: Number(sequence),
    position: Number(position),
    epoch: Number(epoch),
    step: Number(step),
    slot,
    kind,
    tokens: Number(tokens),
    compactedRound: numberOf(marks.compacted),
    prunedStep: numberOf(marks.pruned),
    ...(usage ? { usage } : {}),
    ...(model === undefined ? {} : { model }),
  } as StoredMessage;
  return { message, marks: keyOf(marks), chars: content.length };
}

function markedAnew({ message, chars }: SeenRow, marks: Marks): SeenRow {
  const { usage: _before, ...same } = message;
  const { usage } = metaOf(marks);
  const [compactedRound, prunedStep] = [numberOf(marks.compacted), numberOf(marks.pruned)];
  const now = { ...same, compactedRound, prunedStep, ...(usage ? { usage } : {}) } as StoredMessage;
  return { message: now, marks: keyOf(marks), chars };
}

function metaOf({ meta }: Marks): MessageMeta {
  return typeof meta === "string" ? (JSON.parse(meta) as MessageMeta) : {};
}

function numberOf(text: string | null | undefined): number | undefined {
  return typeof text === "string" ? Number(text) : undefined;
}

/** The answer of a step, where it is stored: then the step is paid. */
export async function findAnswer(
  db: Queryable,
  sessionId: string,
  step: number,
): Promise<(StoredMessage & { finish: string }) | undefined> {
  const [row] = await db
    .select()
    .from(messages)
    .where(and(live(sessionId), eq(messages.step, step), eq(messages.slot, "assistant")));
  return row && { ...toStored(row), finish: ((row.meta ?? {}) as MessageMeta).finish ?? "other" };
}

/** The newest answer of the live line. */
export async function lastAnswer(db: Queryable, sessionId: string): Promise<StoredMessage | undefined> {
  const [row] = await db
    .select()
    .from(messages)
    .where(and(live(sessionId), eq(messages.slot, "assistant")))
    .orderBy(desc(messages.sequence))
    .limit(1);
  return row && toStored(row);
}

/** Sets sequences aside. @returns the first of `count` */
export async function takeSequences(db: Queryable, sessionId: string, count: number): Promise<number> {
  const [row] = await db
    .update(cursors)
    .set({ messageSequence: sql`${cursors.messageSequence} + ${count}` })
    .where(eq(cursors.sessionId, sessionId))
    .returning({ last: cursors.messageSequence });
  if (!row) throw new Error(`Session ${sessionId} has no counters; its row was not made by createSession.`);
  return row.last - count + 1;
}

export interface NewMessage {
  readonly epoch: number;
  readonly step: number;
  readonly slot: string;
  readonly kind: MessageKind;
  readonly message: Message;
  readonly tokens: number;
  readonly meta?: MessageMeta;
}

/** Stores a message at a sequence that was set aside. Idempotent by (session, epoch, step, slot). @returns false where it was there */
export async function insertMessage(
  db: Queryable,
  sessionId: string,
  sequence: number,
  row: NewMessage,
): Promise<boolean> {
  const made = await db
    .insert(messages)
    .values({
      sessionId,
      sequence,
      position: sequence,
      epoch: row.epoch,
      step: row.step,
      slot: row.slot,
      role: row.message.role,
      kind: row.kind,
      content: row.message.content,
      meta: row.meta ?? null,
      tokenCount: row.tokens,
    })
    .onConflictDoNothing()
    .returning({ id: messages.id });
  return made.length > 0;
}

/** Stores what was said before a person stopped it; a whole answer with its calls is `commitAnswer`'s. */
export async function insertPartialAnswer(db: Queryable, sessionId: string, row: NewMessage): Promise<void> {
  await insertMessage(db, sessionId, await takeSequences(db, sessionId, 1), row);
  await dropChunks(db, sessionId, row.step);
}

/** True where a message is there: then no sequence is to be set aside for it, which would stay a hole. */
export async function hasMessage(
  db: Queryable,
  { sessionId, epoch }: { readonly sessionId: string; readonly epoch: number },
  step: number,
  slot: string,
): Promise<boolean> {
  const rows = await db
    .select({ id: messages.id })
    .from(messages)
    .where(
      and(
        eq(messages.sessionId, sessionId),
        eq(messages.epoch, epoch),
        eq(messages.step, step),
        eq(messages.slot, slot),
      ),
    );
  return rows.length > 0;
}

/** The calls an answer asks for, in order. */
export function callsOf(content: readonly AssistantPart[]): ToolCallPart[] {
  return content.filter((part) => part.type === "tool-call");
}

/** Holds the session for this transaction, if the run may write to it. */
export async function lockRun(db: Queryable, sessionId: string, runId: string): Promise<boolean> {
  const rows = await db
    .select({ runId: sessions.runId })
    .from(sessions)
    .where(eq(sessions.id, sessionId))
    .for("share");
  return rows[0]?.runId === runId;
}
