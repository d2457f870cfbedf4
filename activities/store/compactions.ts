/** Compaction rounds and prune marks. Rows are marked, never deleted (invariant 5). */
import { and, desc, eq, isNull, ne, sql } from "drizzle-orm";
import type { Queryable, Store } from "./db.ts";
import type { NewEvent } from "./event.ts";
import { appendEvents } from "./events.ts";
import { compactionEvents } from "./schema.ts";
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

/**
 * Stores a round: event, summary, marks and the watchers' events, in one statement, which with its count checked is one
 * transaction. Idempotent by (session, epoch, round).
 * @param before what must be done before this is committed; where it fails nothing is written
 * @returns `there` where the round was stored already, `superseded` where a newer run has the session: nothing is written
 * @throws when a row to be replaced is not in view any more: another run was here, and nothing is written
 */
export function storeRound(
  store: Pick<Store, "db">,
  runId: string,
  round: CompletedRound,
  events: readonly NewEvent[],
  before: Promise<unknown> = Promise.resolve(),
): Promise<"stored" | "there" | "superseded"> {
  const { sessionId, epoch, step, replaced } = round;
  before.catch(() => undefined);
  const content = JSON.stringify([{ type: "text", text: round.summary }]);
  const log = JSON.stringify(
    events.map((event) => ({ type: event.type, attempt: event.attempt ?? 1, data: event.data })),
  );
  return store.db.transaction(async (tx) => {
    const { rows } = await tx.execute<{ run: boolean; made: boolean; marked: number }>(sql`
      with run as (
        select 1 from sessions where id = ${sessionId} and run_id = ${runId} for share
      ), made as (
        insert into compaction_events (session_id, epoch, step, round, trigger, strategy, attempts, tokens_before,
          tokens_after, duration_ms, status, from_sequence, to_sequence, summary_content)
        select ${sessionId}, ${epoch}, ${step}, ${round.round}, ${round.trigger}, ${round.strategy},
          ${JSON.stringify(round.attempts)}::json, ${round.tokensBefore}, ${round.tokensAfter},
          ${Math.round(round.durationMs)}, 'compacted', ${Math.min(...replaced)}, ${Math.max(...replaced)}, ${round.summary}
        from run on conflict do nothing returning 1
      ), marked as (
        update messages set is_compacted = true, compacted_round = ${round.round}, compacted_at = now()
        from ${rangesOf(replaced)} where session_id = ${sessionId} and sequence between first and last
          and is_compacted = false and superseded_epoch is null and exists (select 1 from made)
        returning 1
      ), hidden as (
        update messages set pruned_step = ${step}
        from ${rangesOf(round.hidden)} where session_id = ${sessionId} and sequence between first and last
          and pruned_step is null and superseded_epoch is null and exists (select 1 from made)
      ), c as (
        update cursors set message_sequence = message_sequence + 1, event_seq = event_seq + ${events.length}
        where session_id = ${sessionId} and exists (select 1 from made) returning message_sequence, event_seq
      ), summary as (
        insert into messages (session_id, sequence, position, epoch, step, slot, role, kind, content, token_count)
        select ${sessionId}, message_sequence, ${round.position}::float8, ${epoch}, ${step}, ${`summary:${round.round}`},
          'assistant', 'summary', ${content}::json, ${round.summaryTokens} from c
      ), log as (
        insert into events (session_id, seq, epoch, step, attempt, type, data)
        select ${sessionId}, event_seq - ${events.length} + t.place, ${epoch}, ${step}, (t.e->>'attempt')::int,
          t.e->>'type', t.e->'data'
        from c, json_array_elements(${log}::json) with ordinality as t(e, place)
      )
      select exists (select 1 from run) as run, exists (select 1 from made) as made,
        (select count(*)::int from marked) as marked`);
    await before;
    const [done] = rows;
    if (!done?.run) return "superseded";
    if (!done.made) return "there";
    const missing = replaced.length - done.marked;
    if (missing !== 0) {
      throw new Error(
        `Compaction round ${round.round}: ${missing} of ${replaced.length} messages are not in view any more. Nothing was changed.`,
      );
    }
    return "stored";
  });
}

/** Notes a round that came to nothing; the transcript stays as it is. */
export async function storeFailedRound(
  db: Queryable,
  round: RoundRow & { readonly reason: string },
): Promise<void> {
  await db.insert(compactionEvents).values({ ...eventOf(round), status: "failed", reason: round.reason });
}

/**
 * Sequences as a table of (first, last), two parameters however many there are: planning for each of a thousand took
 * 2 ms of a round, as many parameters took three times as long as the round (measured).
 */
function rangesOf(sequences: readonly number[]) {
  const ranges: { first: number; last: number }[] = [];
  for (const sequence of sequences.toSorted((a, b) => a - b)) {
    const range = ranges.at(-1);
    if (range !== undefined && sequence <= range.last + 1) range.last = sequence;
    else ranges.push({ first: sequence, last: sequence });
  }
  const list = (values: readonly number[]) => `{${values.join(",")}}`;
  return sql`unnest(${list(ranges.map(({ first }) => first))}::bigint[], ${list(
    ranges.map(({ last }) => last),
  )}::bigint[]) as ranges(first, last)`;
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
  const marked = await db.execute(sql`update messages set pruned_step = ${step}
    from ${rangesOf(sequences)} where session_id = ${sessionId} and sequence between first and last
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
