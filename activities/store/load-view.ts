/** The view of a session as the model is to see it: marks as they are now, contents as they always were. */
import type pg from "pg";
import { MAX_HEAD_MESSAGES } from "../transcript/boundary.ts";
import type { StoredMessage } from "../contract/message.ts";
import type { Database } from "./db.ts";
import { outOfView } from "./compactions.ts";
import { keepSeen, seenRows, type SeenRow } from "./seen-rows.ts";
import type { MessageMeta } from "./transcript.ts";

/** Bare texts, parsed below: the driver's own conversions and an object a row made the load three times slower (measured). */
const AS_TEXT = { getTypeParser: () => (value: string) => value };
/** When the server began, put into words once: doing so for each row took one part in twenty of a load (measured). */
const LIFE = "life as (select pg_postmaster_start_time()::text as began)";
/** What never changes of a row beside its content, in words without blanks, and the life of the server that says so. */
const FACTS = `concat_ws(' ', role, kind, slot, sequence, position, epoch, step, token_count, (select began from life))`;
/** Its id and what may change of it: its marks, and its bill, which an undone round takes away. */
const MARKS = `concat(id, ' ', pruned_step, ' ', case when kind = 'answer' then meta end)`;
/** Above the highest id that was seen, or all where another server gave that. */
const IS_NEW = "(id > $2 or (select began from life) is distinct from $3)";
const IN_VIEW =
  "session_id = $1 and superseded_epoch is null and not sequence <@ (select sequences from gone)";
/** Rows at the beginning among which middle removal may have kept answers and results, the task's with them. */
const HEAD_ROWS = MAX_HEAD_MESSAGES + 1;
/**
 * Behind the newest summary everything is in view; in front of it only what a person said and the head. So the rows are
 * found without asking of each that was ever stored whether a round replaced it. Three texts a row: seven
 * columns took a third longer (measured).
 */
const LOAD_VIEW = `with ${LIFE}, gone as (
    ${outOfView("$1")}
  ), edge as (
    select coalesce(max(position), 0) as at from stored_messages where ${IN_VIEW} and kind = 'summary'
  )
  select ${MARKS}, case when ${IS_NEW} then ${FACTS} end, case when ${IS_NEW} then content end from (
    select * from stored_messages where ${IN_VIEW} and position >= (select at from edge)
    union all
    select * from stored_messages where ${IN_VIEW} and role = 'user' and position < (select at from edge)
    union all
    select * from (
      select * from stored_messages where session_id = $1 and superseded_epoch is null order by position limit ${HEAD_ROWS}
    ) head where ${IN_VIEW} and role <> 'user' and position < (select at from edge)
  ) rows`;

const LOAD_ROWS = `with ${LIFE} select id, ${FACTS}, content from stored_messages where session_id = $1 and id = any($2::bigint[])`;

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
  const values = [sessionId, highest(before.byId), before.serverStart];
  const rows = (await ask("load_view", LOAD_VIEW, values)).map(([marks, facts, content]) => ({
    id: Number.parseInt(marks as string, 10),
    marks: marks as string,
    stored: typeof facts === "string" && typeof content === "string" ? { facts, content } : undefined,
  }));
  const missing = rows.filter(({ id, stored }) => stored === undefined && !before.byId.has(id));
  const late = new Map<number, Stored>();
  // Stored by a transaction that began earlier and ended later, or in view again.
  if (missing.length > 0) {
    const ids = missing.map(({ id }) => id);
    for (const [id, facts, content] of await ask("load_rows", LOAD_ROWS, [sessionId, ids]))
      late.set(Number(id), { facts: facts as string, content: content as string });
  }
  let newest: Stored | undefined;
  const byId = new Map<number, SeenRow>();
  for (const { id, marks, ...row } of rows) {
    const stored = row.stored ?? late.get(id);
    if (stored !== undefined) {
      newest = stored;
      byId.set(id, readRow(stored, marks));
    } else {
      const seen = before.byId.get(id) as SeenRow;
      byId.set(id, seen.marks === marks ? seen : markedAnew(seen, marks));
    }
  }
  const serverStart = newest === undefined ? before.serverStart : serverStartOf(newest);
  keepSeen(pool, sessionId, { serverStart, byId });
  // Here and not by the server, which would carry the contents through its sort: a quarter of the load of what was seen.
  return Array.from(byId.values(), (row) => row.message).sort((a, b) => a.position - b.position);
}

function highest(contents: ReadonlyMap<number, unknown>): number {
  let id = 0;
  for (const each of contents.keys()) if (each > id) id = each;
  return id;
}

interface Stored {
  readonly facts: string;
  readonly content: string;
}

function serverStartOf({ facts }: Stored): string {
  return facts.split(" ").slice(8).join(" ");
}

function readRow({ facts, content }: Stored, marks: string): SeenRow {
  const [role, kind, slot, sequence, position, epoch, step, tokens] = facts.split(" ", 8);
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
    ...marksOf(marks),
  } as StoredMessage;
  return { message, marks, chars: content.length };
}

function markedAnew({ message, chars }: SeenRow, marks: string): SeenRow {
  const { usage: _before, ...same } = message;
  return { message: { ...same, ...marksOf(marks) } as StoredMessage, marks, chars };
}

function marksOf(marks: string) {
  const [id, pruned] = marks.split(" ", 2) as [string, string];
  const json = marks.slice(id.length + pruned.length + 2);
  const { usage, model }: MessageMeta = json === "" ? {} : JSON.parse(json);
  return {
    prunedStep: pruned === "" ? undefined : Number(pruned),
    ...(usage ? { usage } : {}),
    ...(model === undefined ? {} : { model }),
  };
}
