/** What tools may read of the session's past: whole outputs, blobs, and the transcript, searched by words. */
import { sql, type SQL, and, asc, desc, eq, lte, max } from "drizzle-orm";
import { alias, type PgColumn } from "drizzle-orm/pg-core";
import type { HistorySearch, SessionMemory } from "../contract/tools.ts";
import { outputHandle } from "./tool-calls.ts";
import type { Queryable } from "./db.ts";
import { isLive } from "./live-line.ts";
import { storedMessages, toolCalls, toolOutputs } from "./schema/index.ts";
import { cutPage } from "../text/cut.ts";
import type { ToolResultPart, UserPart } from "../contract/message.ts";
import { saveBlobFor } from "./blobs.ts";

const EXCERPT_CHARS = 300;
/**
 * Characters of whole outputs that one search covers, the newest first. One word takes the server 25 ms per Mi characters on a
 * busy machine (measured, 2026-11-22).
 */
const MAX_SEARCHED_CHARS = 64 * 1024 * 1024;

interface FoundRow extends Record<string, unknown> {
  readonly place: string | null;
  readonly at_step: number;
  readonly said_by: string;
  readonly output: string | null;
  readonly begin: string;
  readonly excerpt: string;
  readonly skipped: number;
}

/**
 * Rows of the live line that contain every word, compacted ones too, and whole outputs that do; newest first. One query. Words
 * match anywhere in a text, ignoring case; the excerpt surrounds the longest word.
 * @param terms at least one
 */
export async function searchTranscript(
  db: Queryable,
  sessionId: string,
  terms: readonly string[],
  {
    limit,
    maxSearchedChars = MAX_SEARCHED_CHARS,
  }: { readonly limit: number; readonly maxSearchedChars?: number },
): Promise<HistorySearch> {
  const longest = terms.reduce((long, word) => (word.length > long.length ? word : long), "");
  const { rows } = await db.execute<FoundRow>(sql`
    with outputs(place, at_step, output, before) as (${outputsOf(sessionId)}),
    hits(place, at_step, said_by, output, begin, excerpt) as (
      ${foundMessages(sessionId, terms, longest)}
      union all
      ${foundOutputs(sessionId, terms, longest, maxSearchedChars)}
    ), newest as (
      -- A cut result whose whole output has the words as well is listed once, by its output.
      select distinct on (place) * from hits order by place desc, output nulls last limit ${limit}
    )
    select newest.*, (select count(*)::int from outputs where before >= ${maxSearchedChars}) as skipped
    from (select 1) as one left join newest on true order by newest.place desc`);
  return { hits: rows.flatMap(hitsOf), skippedOutputs: rows[0]?.skipped ?? 0 };
}

/** Whole outputs of cut results, each with the total number of characters of the newer ones. */
function outputsOf(sessionId: string): SQL {
  const last = alias(toolOutputs, "last");
  const of = (outputs: { readonly sessionId: PgColumn; readonly handle: PgColumn }) =>
    sql`${outputs.sessionId} = ${toolCalls.sessionId} and ${outputs.handle} = key.output`;
  return sql`
    select ${toolCalls.sequence}, ${toolCalls.step}, key.output,
      sum(size.chars) over (order by ${toolCalls.sequence} desc) - size.chars
    from ${toolCalls}
    cross join lateral (select ${outputHandle} as output) key
    cross join lateral (
      select max(${toolOutputs.offset} + length(${toolOutputs.content})) as chars from ${toolOutputs}
      where ${of(toolOutputs)} and ${toolOutputs.part} = (select max(${last.part}) from ${toolOutputs} ${last} where ${of(last)})
    ) size
    where ${isLive(toolCalls, sessionId)} and ${toolCalls.truncated} and size.chars is not null`;
}

function foundMessages(sessionId: string, terms: readonly string[], longest: string): SQL {
  // In addition to the text itself: a row's JSON is checked first, without being parsed.
  const escaped = terms.map((word) => JSON.stringify(word).slice(1, -1));
  return sql`
    select ${storedMessages.sequence}, ${storedMessages.step}, ${storedMessages.role}, null::text, 0::bigint,
      ${excerptOf(sql`t.body`, longest)}
    from ${storedMessages}
    cross join lateral (
      select string_agg(concat_ws(' ', p->>'toolName', p->>'text', p->>'input', p->>'filename'), E'\n') as body
      from json_array_elements(${storedMessages.content}) p
    ) t
    where ${isLive(storedMessages, sessionId)} and ${storedMessages.role} <> 'system'
      and ${storedMessages.content}::text ilike all (${patternsOf(escaped)}) and t.body ilike all (${patternsOf(terms)})`;
}

function foundOutputs(
  sessionId: string,
  terms: readonly string[],
  longest: string,
  maxSearchedChars: number,
): SQL {
  const body = sql`hit.body`;
  const isOfCall = sql`${toolOutputs.sessionId} = ${sessionId} and ${toolOutputs.handle} = whole.output`;
  return sql`
    select whole.place, whole.at_step, 'tool', whole.output, hit.begin + ${placeOf(body, longest)} - 1, ${excerptOf(body, longest)}
    from outputs whole
    cross join lateral (
      select ${toolOutputs.content} as body, ${toolOutputs.offset} as begin from ${toolOutputs}
      where ${isOfCall} and ${toolOutputs.content} ilike ${like(longest)}
      order by ${toolOutputs.part} limit 1
    ) hit
    where whole.before < ${maxSearchedChars} and not exists (
      select from unnest(${patternsOf(terms)}) as word where not exists (
        select from ${toolOutputs} where ${isOfCall} and ${toolOutputs.content} ilike word
      )
    )`;
}

const placeOf = (text: SQL, word: string): SQL =>
  sql`greatest(1, position(lower(${word}) in lower(${text})))`;

function excerptOf(text: SQL, word: string): SQL {
  const from = sql`greatest(1, ${placeOf(text, word)} - ${EXCERPT_CHARS / 2})`;
  return sql`case when ${from} > 1 then '…' else '' end || substr(${text}, ${from}, ${EXCERPT_CHARS})
    || case when length(${text}) >= ${from} + ${EXCERPT_CHARS} then '…' else '' end`;
}

function hitsOf({
  place,
  at_step: step,
  said_by: role,
  output: handle,
  begin,
  excerpt,
}: FoundRow): HistorySearch["hits"] {
  if (place === null) return [];
  const output = handle === null ? {} : { output: { handle, offset: Number(begin) } };
  return [{ sequence: Number(place), step, role, excerpt, ...output }];
}

const patternsOf = (terms: readonly string[]): SQL =>
  sql`array(select json_array_elements_text(${JSON.stringify(terms.map(like))}::json))`;

/** A LIKE pattern that matches a text with the word. */
function like(word: string): string {
  return `%${word.replaceAll(/[\\%_]/g, String.raw`\$&`)}%`;
}

/** Handle of a person's message: see `messageHandle`. */
const MESSAGE_HANDLE = /^m(\d+)$/;
const HANDLE = /^(?:e(\d+))?s(\d+)c(\d+)$/;

export function createSessionMemory(db: Queryable, sessionId: string): SessionMemory {
  return {
    async readOutput(handle, offset, limit) {
      const stored = await storedOutput(db, { sessionId, handle }, offset, limit);
      if (stored) return stored;
      // A result that was not cut is in the transcript, even if it has been pruned or compacted since.
      const text = await resultText(db, sessionId, handle);
      return text === undefined ? undefined : { ...cutPage(text, offset, limit), total: text.length };
    },
    search: (terms, limit) => searchTranscript(db, sessionId, terms, { limit }),
    saveBlob: (bytes, mediaType) => saveBlobFor(db, sessionId, { bytes, mediaType }),
  };
}

async function storedOutput(
  db: Queryable,
  { sessionId, handle }: { readonly sessionId: string; readonly handle: string },
  offset: number,
  limit: number,
) {
  const ofHandle = and(eq(toolOutputs.sessionId, sessionId), eq(toolOutputs.handle, handle));
  const [last] = await db.select().from(toolOutputs).where(ofHandle).orderBy(desc(toolOutputs.part)).limit(1);
  if (!last) return undefined;
  const total = last.offset + last.content.length;
  const begin = db
    .select({ part: max(toolOutputs.part) })
    .from(toolOutputs)
    .where(and(ofHandle, lte(toolOutputs.offset, offset)));
  const parts = await db
    .select()
    .from(toolOutputs)
    .where(
      and(
        ofHandle,
        // Includes the piece that begins where the page ends: it may hold the second half of a character.
        lte(toolOutputs.offset, offset + limit),
        sql`${toolOutputs.part} >= coalesce(${begin}, 0)`,
      ),
    )
    .orderBy(asc(toolOutputs.part));
  const start = parts[0]?.offset ?? 0;
  const text = parts.map((part) => part.content).join("");
  const page = cutPage(text, offset - start, limit);
  return { text: page.text, end: start + page.end, total };
}

async function resultText(db: Queryable, sessionId: string, handle: string): Promise<string | undefined> {
  const message = MESSAGE_HANDLE.exec(handle)?.[1];
  if (message !== undefined) return messageText(db, sessionId, Number(message));
  const match = HANDLE.exec(handle);
  if (!match) return undefined;
  const [row] = await db
    .select({ content: storedMessages.content })
    .from(storedMessages)
    .where(
      and(
        eq(storedMessages.sessionId, sessionId),
        eq(storedMessages.epoch, Number(match[1] ?? 1)),
        eq(storedMessages.step, Number(match[2])),
        eq(storedMessages.slot, `tool:${match[3]}`),
      ),
    );
  return (row?.content as [ToolResultPart] | undefined)?.[0].text;
}

async function messageText(db: Queryable, sessionId: string, sequence: number): Promise<string | undefined> {
  const [row] = await db
    .select({ content: storedMessages.content })
    .from(storedMessages)
    .where(
      and(
        eq(storedMessages.sessionId, sessionId),
        eq(storedMessages.sequence, sequence),
        eq(storedMessages.role, "user"),
      ),
    );
  return (row?.content as UserPart[] | undefined)
    ?.map((part) => (part.type === "text" ? part.text : `[${part.filename ?? "a file"} (${part.mediaType})]`))
    .join("\n");
}
