/** Search by words over a session's transcript and the whole outputs behind cut results. */
import { sql, type SQL } from "drizzle-orm";
import type { HistorySearch } from "../contract/tools.ts";
import { outputHandle } from "./tool-calls.ts";
import type { Queryable } from "./db.ts";

const EXCERPT_CHARS = 300;
/**
 * Characters of whole outputs that one search covers, the newest first. One word takes the server 25 ms per Mi characters on a
 * busy machine (measured, 2026-11-22).
 */
const MAX_SEARCHED_CHARS = 64 * 1024 * 1024;

interface FoundRow extends Record<string, unknown> {
  readonly sequence: string | null;
  readonly step: number;
  readonly role: string;
  readonly handle: string | null;
  readonly offset: string;
  readonly excerpt: string;
  readonly skipped: number;
}

/**
 * Rows of the live line that contain every word, compacted ones too, and whole outputs that do; newest first. One query. Words
 * match anywhere in a text, ignoring case; the excerpt surrounds the longest word.
 * @param words at least one
 */
export async function searchHistory(
  db: Queryable,
  sessionId: string,
  words: readonly string[],
  {
    limit,
    maxSearchedChars = MAX_SEARCHED_CHARS,
  }: { readonly limit: number; readonly maxSearchedChars?: number },
): Promise<HistorySearch> {
  const longest = words.reduce((long, word) => (word.length > long.length ? word : long), "");
  const { rows } = await db.execute<FoundRow>(sql`
    with outputs as (${outputsOf(sessionId)}),
    found as (
      ${foundMessages(sessionId, words, longest)}
      union all
      ${foundOutputs(sessionId, words, longest, maxSearchedChars)}
    ), newest as (
      -- A cut result whose whole output has the words as well is listed once, by its output.
      select distinct on (sequence) * from found order by sequence desc, handle nulls last limit ${limit}
    )
    select newest.*, (select count(*)::int from outputs where before >= ${maxSearchedChars}) as skipped
    from (select 1) as one left join newest on true order by newest.sequence desc`);
  return { hits: rows.flatMap(hitsOf), skippedOutputs: rows[0]?.skipped ?? 0 };
}

/** Whole outputs of cut results, each with the total number of characters of the newer ones. */
const outputsOf = (sessionId: string): SQL => sql`
  select c.sequence, c.step, key.handle, sum(size.chars) over (order by c.sequence desc) - size.chars as before
  from tool_calls c
  cross join lateral (select ${outputHandle("c")} as handle) key
  cross join lateral (
    select max("offset" + length(content)) as chars from tool_outputs o
    where o.session_id = c.session_id and o.handle = key.handle
      and o.part = (select max(part) from tool_outputs last where last.session_id = c.session_id and last.handle = key.handle)
  ) size
  where c.session_id = ${sessionId} and c.superseded_epoch is null and c.truncated and size.chars is not null`;

function foundMessages(sessionId: string, words: readonly string[], longest: string): SQL {
  // In addition to the text itself: a row's JSON is checked first, without being parsed.
  const escaped = words.map((word) => JSON.stringify(word).slice(1, -1));
  return sql`
    select m.sequence, m.step, m.role, null::text as handle, 0::bigint as "offset", ${excerptOf(sql`t.body`, longest)} as excerpt
    from stored_messages m
    cross join lateral (
      select string_agg(concat_ws(' ', part->>'toolName', part->>'text', part->>'input', part->>'filename'), E'\n') as body
      from json_array_elements(m.content) part
    ) t
    where m.session_id = ${sessionId} and m.superseded_epoch is null and m.role <> 'system'
      and m.content::text ilike all (${patternsOf(escaped)}) and t.body ilike all (${patternsOf(words)})`;
}

function foundOutputs(
  sessionId: string,
  words: readonly string[],
  longest: string,
  maxSearchedChars: number,
): SQL {
  const content = sql`hit.content`;
  return sql`
    select w.sequence, w.step, 'tool', w.handle, hit."offset" + ${placeOf(content, longest)} - 1, ${excerptOf(content, longest)}
    from outputs w
    cross join lateral (
      select o.content, o."offset" from tool_outputs o
      where o.session_id = ${sessionId} and o.handle = w.handle and o.content ilike ${like(longest)}
      order by o.part limit 1
    ) hit
    where w.before < ${maxSearchedChars} and not exists (
      select from unnest(${patternsOf(words)}) as word where not exists (
        select from tool_outputs o
        where o.session_id = ${sessionId} and o.handle = w.handle and o.content ilike word
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

function hitsOf({ sequence, step, role, handle, offset, excerpt }: FoundRow): HistorySearch["hits"] {
  if (sequence === null) return [];
  const output = handle === null ? {} : { output: { handle, offset: Number(offset) } };
  return [{ sequence: Number(sequence), step, role, excerpt, ...output }];
}

const patternsOf = (words: readonly string[]): SQL =>
  sql`array(select json_array_elements_text(${JSON.stringify(words.map(like))}::json))`;

/** A LIKE pattern that matches a text with the word. */
function like(word: string): string {
  return `%${word.replaceAll(/[\\%_]/g, String.raw`\$&`)}%`;
}
