/** The view of a session as the model is to see it: marks as they are now, contents as they always were. */
import type pg from "pg";
import { MAX_HEAD_MESSAGES } from "../context/boundary.ts";
import type { StoredMessage } from "../context/message.ts";
import type { Database } from "./db.ts";
import { keepSeen, seenRows, type SeenRow } from "./seen-rows.ts";
import type { MessageMeta } from "./transcript.ts";

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
