/** Compaction rounds and prune marks. Rows are marked, never deleted (invariant 5). */
import { and, desc, eq, isNull, ne, sql } from "drizzle-orm";
import type { Queryable, Store } from "./db.ts";
import type { NewEvent } from "./event.ts";
import { appendEvents } from "./events.ts";
import { compactionEvents } from "./schema/index.ts";
import { lockRun } from "./transcript.ts";

export interface RoundRow {
  readonly sessionId: string;
  readonly epoch: number;
  readonly step: number;
  readonly round: number;
  readonly trigger: string;
  readonly strategy: string;
  /** What each rung of the ladder came to. */
  readonly attempts: readonly unknown[];
  readonly tokensBefore: number;
  readonly tokensAfter: number;
  readonly durationMs: number;
}

export interface CompletedRound extends RoundRow {
  readonly summary: string;
  readonly summaryTokens: number;
  /** Where the summary stands in the view. */
  readonly position: number;
  /** Sequences of the rows that it replaces. */
  readonly replaced: readonly number[];
  /** Sequences of rows that stay and are hidden. */
  readonly hidden: readonly number[];
}

/** A live round as the next one has to know it, failed ones too. */
export interface RecentRound {
  readonly round: number;
  readonly status: string;
  readonly tokensBefore: number;
  readonly tokensAfter: number;
  /** What each rung of its ladder came to. */
  readonly outcomes: readonly string[];
}

/**
 * SQL for what the rounds in force have taken out of a session's view: one row, `sequences`, a set.
 * @param sessionId SQL as well
 */
export function outOfView(sessionId: string): string {
  return `select coalesce(range_agg(part), '{}') as sequences from compaction_events, unnest(replaced) as part
    where session_id = ${sessionId} and superseded_epoch is null`;
}

const RECENT_ROUNDS = 10;

/** The newest live rounds, newest first: a finished one is not done again. */
export async function recentRounds(db: Queryable, sessionId: string): Promise<RecentRound[]> {
  const rows = await db
    .select({
      round: compactionEvents.round,
      status: compactionEvents.status,
      tokensBefore: compactionEvents.tokensBefore,
      tokensAfter: compactionEvents.tokensAfter,
      attempts: compactionEvents.attempts,
    })
    .from(compactionEvents)
    .where(and(eq(compactionEvents.sessionId, sessionId), isNull(compactionEvents.supersededEpoch)))
    .orderBy(desc(compactionEvents.id))
    .limit(RECENT_ROUNDS);
  return rows.map(({ attempts, ...row }) => ({
    ...row,
    outcomes: (attempts as readonly { readonly outcome: string }[]).map((attempt) => attempt.outcome),
  }));
}

const STORE_ROUND = `
with run as (
  select id from sessions where id = $1 and run_id = $2 for share
), gone as (
  ${outOfView("(select id from run)")}
), replaced as (
  select count(*)::int as rows from stored_messages
  where session_id = $1 and sequence between $12 and $13 and sequence <@ $14::int8multirange
    and superseded_epoch is null and not sequence <@ (select sequences from gone)
), made as (
  insert into compaction_events (session_id, epoch, step, round, trigger, strategy, attempts, tokens_before, tokens_after,
    duration_ms, status, from_sequence, to_sequence, replaced, summary_content)
  select $1, $3, $4, $5, $6, $7, $8::json, $9, $10, $11, 'compacted', $12, $13, $14::int8multirange, $15
  from run where (select rows from replaced) = $21 on conflict do nothing returning 1
), hidden as (
  update stored_messages set pruned_step = $4
  where session_id = $1 and sequence = any($16::bigint[])
    and pruned_step is null and superseded_epoch is null and exists (select 1 from made)
), c as (
  update cursors set message_sequence = message_sequence + 1, event_seq = event_seq + json_array_length($17::json)
  where session_id = $1 and exists (select 1 from made) returning message_sequence, event_seq
), summary as (
  insert into stored_messages (session_id, sequence, position, epoch, step, slot, role, kind, content, token_count)
  select $1, message_sequence, $18::float8, $3, $4, 'summary:' || $5, 'assistant', 'summary', $19::json, $20 from c
), log as (
  insert into events (session_id, seq, epoch, step, attempt, type, data)
  select $1, event_seq - json_array_length($17::json) + t.place, $3, $4, (t.e->>'attempt')::int, t.e->>'type', t.e->'data'
  from c, json_array_elements($17::json) with ordinality as t(e, place)
)
select exists (select 1 from run) as run, exists (select 1 from made) as made, (select rows from replaced) as "inView",
  exists (select 1 from compaction_events where session_id = $1 and epoch = $3 and round = $5 and status <> 'failed') as there`;

interface Stored {
  readonly run: boolean;
  readonly made: boolean;
  readonly there: boolean;
  /** How many of the messages that are to be replaced. */
  readonly inView: number;
}

/**
 * Stores a round: event with what it replaced, summary and the watchers' events, in one statement, which is one
 * transaction. Idempotent by (session, epoch, round).
 * @returns `there` where the round was stored already, `superseded` where a newer run has the session: nothing is written
 * @throws when a row to be replaced is not in view any more: another run was here, and nothing is written
 */
export async function storeRound(
  { pool }: Pick<Store, "pool">,
  runId: string,
  round: CompletedRound,
  events: readonly NewEvent[],
): Promise<"stored" | "there" | "superseded"> {
  const { replaced, summary } = round;
  const values = [
    round.sessionId,
    runId,
    round.epoch,
    round.step,
    round.round,
    round.trigger,
    round.strategy,
    JSON.stringify(round.attempts),
    round.tokensBefore,
    round.tokensAfter,
    Math.round(round.durationMs),
    Math.min(...replaced),
    Math.max(...replaced),
    multirangeOf(replaced),
    summary,
    round.hidden,
    JSON.stringify(events.map(({ type, attempt = 1, data }) => ({ type, attempt, data }))),
    round.position,
    JSON.stringify([{ type: "text", text: summary }]),
    round.summaryTokens,
    replaced.length,
  ];
  const { rows } = await pool.query<Stored>({ name: "store_round", text: STORE_ROUND, values });
  const { run, made, there, inView } = rows[0] as Stored;
  if (!run) return "superseded";
  if (made) return "stored";
  const missing = replaced.length - inView;
  // In view, and yet not made: another attempt stored it meanwhile.
  if (there || missing === 0) return "there";
  throw new Error(
    `Compaction round ${round.round}: ${missing} of ${replaced.length} messages are not in view any more. Nothing was changed.`,
  );
}

/** Notes a round that came to nothing; the transcript stays as it is. */
export async function storeFailedRound(
  db: Queryable,
  round: RoundRow & { readonly reason: string },
): Promise<void> {
  await db.insert(compactionEvents).values({ ...eventOf(round), status: "failed", reason: round.reason });
}

/** As Postgres reads a set: `{[1,4],[7,7]}`. */
function multirangeOf(sequences: readonly number[]): string {
  const ranges: { readonly first: number; last: number }[] = [];
  for (const sequence of sequences.toSorted((a, b) => a - b)) {
    const range = ranges.at(-1);
    if (range !== undefined && sequence <= range.last + 1) range.last = sequence;
    else ranges.push({ first: sequence, last: sequence });
  }
  return `{${ranges.map(({ first, last }) => `[${first},${last}]`).join(",")}}`;
}

function eventOf(round: RoundRow) {
  const { sessionId, epoch, step, trigger, strategy, attempts, tokensBefore, tokensAfter, durationMs } =
    round;
  return {
    sessionId,
    epoch,
    step,
    round: round.round,
    trigger,
    strategy,
    attempts,
    tokensBefore,
    tokensAfter,
    durationMs: Math.round(durationMs),
  };
}

/** Highest live round number, undone ones counted: a number is never given twice. */
export async function lastRound(db: Queryable, sessionId: string): Promise<number> {
  const [row] = await db
    .select({ round: sql<number>`coalesce(max(${compactionEvents.round}), 0)::int` })
    .from(compactionEvents)
    .where(
      and(
        eq(compactionEvents.sessionId, sessionId),
        ne(compactionEvents.status, "failed"),
        isNull(compactionEvents.supersededEpoch),
      ),
    );
  return row?.round ?? 0;
}

/** Hides tool results from the view. Idempotent. @returns how many were not hidden before */
async function markPruned(
  db: Queryable,
  sessionId: string,
  step: number,
  sequences: readonly number[],
): Promise<number> {
  if (sequences.length === 0) return 0;
  const marked = await db.execute(sql`update stored_messages set pruned_step = ${step}
    where session_id = ${sessionId} and sequence = any(${`{${sequences.join(",")}}`}::bigint[])
      and pruned_step is null and superseded_epoch is null`);
  return marked.rowCount ?? 0;
}

/**
 * Hides rows and tells watchers, in one transaction.
 * @returns how many were not hidden before; `superseded`, with nothing written, where a newer run has the session
 */
export function storePrune(
  store: Pick<Store, "db">,
  runId: string,
  at: { readonly sessionId: string; readonly epoch: number; readonly step: number },
  marks: { readonly sequences: readonly number[]; readonly savedTokens: number },
): Promise<number | "superseded"> {
  const { sessionId, epoch, step } = at;
  return store.db.transaction(async (tx) => {
    if (!(await lockRun(tx, sessionId, runId))) return "superseded";
    const prunedCount = await markPruned(tx, sessionId, step, marks.sequences);
    const data = { prunedCount, savedTokens: marks.savedTokens };
    await appendEvents(tx, sessionId, epoch, [{ type: "context:pruned", step, data }]);
    return prunedCount;
  });
}
