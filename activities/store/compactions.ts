/** Compaction rounds and prune marks. Rows are marked, never deleted (invariant 5). */
import { retryable } from "../contract/failures.ts";
import { and, desc, inArray, isNull, max, ne, sql, type Placeholder, type SQL } from "drizzle-orm";
import { QueryBuilder } from "drizzle-orm/pg-core";
import { isLive } from "./live-line.ts";
import type { Queryable, Store } from "./db.ts";
import type { NewEvent } from "./event.ts";
import { appendEvents } from "./events.ts";
import { compactionEvents, storedMessages } from "./schema/index.ts";
import { insertMessage, takeSequences } from "./transcript.ts";
import { addMark, multirangeOf } from "./view-marks.ts";
import { lockRun } from "./session-locks.ts";

export interface RoundRow {
  readonly sessionId: string;
  readonly epoch: number;
  readonly step: number;
  readonly round: number;
  readonly trigger: string;
  readonly strategy: string;
  /** The outcome of each attempt in the fallback chain. */
  readonly attempts: readonly unknown[];
  readonly tokensBefore: number;
  readonly tokensAfter: number;
  readonly durationMs: number;
}

export interface CompletedRound extends RoundRow {
  readonly summary: string;
  readonly summaryTokens: number;
  /** The summary's position in the view. */
  readonly position: number;
  /** Sequences of the rows that it replaces. */
  readonly replaced: readonly number[];
  /** Sequences of rows that are kept but hidden. */
  readonly hidden: readonly number[];
}

/** What the next round has to know about an earlier live round, failed ones included. */
export interface RecentRound {
  readonly round: number;
  readonly status: string;
  readonly tokensBefore: number;
  readonly tokensAfter: number;
  /** The outcome of each attempt in its fallback chain. */
  readonly outcomes: readonly string[];
}

/** The sequences that the rounds in force have removed from a session's view: a query of one row, a multirange. */
export function outOfView(sessionId: string | Placeholder | SQL) {
  return new QueryBuilder()
    .select({ sequences: sql<string>`coalesce(range_agg(range), '{}')`.as("out_of_view") })
    .from(sql`${compactionEvents}, unnest(${compactionEvents.replaced}) as range`)
    .where(isLive(compactionEvents, sessionId));
}

const RECENT_ROUNDS = 10;

/** The newest live rounds, newest first: a finished one is not repeated. */
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
    .where(isLive(compactionEvents, sessionId))
    .orderBy(desc(compactionEvents.id))
    .limit(RECENT_ROUNDS);
  return rows.map(({ attempts, ...row }) => ({
    ...row,
    outcomes: (attempts as readonly { readonly outcome: string }[]).map((attempt) => attempt.outcome),
  }));
}

/**
 * Stores a round in one transaction: what it replaced and hid, its summary, and the watchers' events. Idempotent by
 * (session, epoch, round).
 * @returns `there` if the round was stored already, `superseded` if a newer run has the session: nothing is written
 * @throws if a row to be replaced is no longer in view because another run changed the session; nothing is written
 */
export function storeRound(
  { db }: Pick<Store, "db">,
  runId: string,
  round: CompletedRound,
  events: readonly NewEvent[],
): Promise<"stored" | "there" | "superseded"> {
  const { sessionId, epoch, step, summary } = round;
  return db.transaction(async (tx) => {
    if (!(await lockRun(tx, sessionId, runId))) return "superseded";
    const replaced = multirangeOf(round.replaced);
    const inView = await countInView(tx, sessionId, replaced);
    const made = await tx
      .insert(compactionEvents)
      .values({
        ...round,
        durationMs: Math.round(round.durationMs),
        status: "compacted",
        fromSequence: Math.min(...round.replaced),
        toSequence: Math.max(...round.replaced),
        replaced,
        summaryContent: summary,
      })
      .onConflictDoNothing()
      .returning({ id: compactionEvents.id });
    if (made.length === 0) return "there";
    const missing = round.replaced.length - inView;
    if (missing > 0) {
      throw retryable(
        "Unexpected",
        `Compaction round ${round.round}: ${missing} of ${round.replaced.length} messages are not in view any more. Nothing was changed.`,
      );
    }
    await markPruned(tx, round, round.hidden, { round: round.round, roundEpoch: epoch });
    await insertMessage(tx, sessionId, await takeSequences(tx, sessionId, 1), {
      epoch,
      step,
      slot: `summary:${round.round}`,
      kind: "summary",
      message: { role: "assistant", content: [{ type: "text", text: summary }] },
      tokens: round.summaryTokens,
      position: round.position,
    });
    await appendEvents(tx, sessionId, epoch, events);
    return "stored";
  });
}

async function countInView(tx: Queryable, sessionId: string, sequences: string): Promise<number> {
  const { sequence } = storedMessages;
  return tx.$count(
    storedMessages,
    and(
      isLive(storedMessages, sessionId),
      sql`${sequence} <@ ${sequences}::int8multirange`,
      sql`not ${sequence} <@ (${outOfView(sessionId)})`,
    ),
  );
}

/** Stores a failed compaction; the transcript is unchanged. */
export async function storeFailedRound(
  db: Queryable,
  round: RoundRow & { readonly reason: string },
): Promise<void> {
  const durationMs = Math.round(round.durationMs);
  await db.insert(compactionEvents).values({ ...round, durationMs, status: "failed" });
}

/** Highest live round number, undone ones included: a number is never used twice. */
export async function lastRound(db: Queryable, sessionId: string): Promise<number> {
  const [row] = await db
    .select({ round: max(compactionEvents.round) })
    .from(compactionEvents)
    .where(and(isLive(compactionEvents, sessionId), ne(compactionEvents.status, "failed")));
  return row?.round ?? 0;
}

/** Hides tool results from the view. Idempotent. @returns how many were not hidden before */
async function markPruned(
  db: Queryable,
  { sessionId, epoch, step }: { readonly sessionId: string; readonly epoch: number; readonly step: number },
  sequences: readonly number[],
  by: { readonly round?: number; readonly roundEpoch?: number } = {},
): Promise<number> {
  if (sequences.length === 0) return 0;
  const marked = await db
    .update(storedMessages)
    .set({ prunedStep: step })
    .where(
      and(
        isLive(storedMessages, sessionId),
        inArray(storedMessages.sequence, [...sequences]),
        isNull(storedMessages.prunedStep),
      ),
    )
    .returning({ sequence: storedMessages.sequence });
  const hidden = marked.map(({ sequence }) => sequence);
  if (hidden.length > 0)
    await addMark(db, { sessionId, epoch, step, kind: "prune", sequences: multirangeOf(hidden), ...by });
  return hidden.length;
}

/**
 * Hides rows and notifies watchers, in one transaction.
 * @returns how many were not hidden before; `superseded`, with nothing written, if a newer run has the session
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
    const prunedCount = await markPruned(tx, at, marks.sequences);
    const data = { prunedCount, savedTokens: marks.savedTokens };
    await appendEvents(tx, sessionId, epoch, [{ type: "context:pruned", step, data }]);
    return prunedCount;
  });
}
