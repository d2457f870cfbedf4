/** Compaction rounds and prune marks. Rows are marked, never deleted (invariant 5). */
import { and, desc, eq, isNull, ne, sql } from "drizzle-orm";
import type { Queryable } from "./db.ts";
import { compactionEvents, messages } from "./schema.ts";
import { takeSequences } from "./transcript.ts";

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
}

export type StoredRound = typeof compactionEvents.$inferSelect;

/** The live, finished round of a number, where it is there: then it is not done again. */
export async function findRound(
  db: Queryable,
  sessionId: string,
  round: number,
): Promise<StoredRound | undefined> {
  const [row] = await db
    .select()
    .from(compactionEvents)
    .where(
      and(
        eq(compactionEvents.sessionId, sessionId),
        eq(compactionEvents.round, round),
        eq(compactionEvents.status, "compacted"),
        isNull(compactionEvents.supersededEpoch),
      ),
    )
    .orderBy(desc(compactionEvents.id))
    .limit(1);
  return row;
}

/**
 * Stores a round: event, summary, marks. To be called inside a transaction, which makes the three one.
 * Idempotent by (session, epoch, round). @returns false where it was there already and nothing was written
 * @throws when a row to be replaced is not in view any more: another run was here, and nothing may be written
 */
export async function storeRound(tx: Queryable, round: CompletedRound): Promise<boolean> {
  const { sessionId, epoch, step } = round;
  const made = await tx
    .insert(compactionEvents)
    .values({
      ...eventOf(round),
      status: "compacted",
      fromSequence: Math.min(...round.replaced),
      toSequence: Math.max(...round.replaced),
      summaryContent: round.summary,
    })
    .onConflictDoNothing()
    .returning({ id: compactionEvents.id });
  if (made.length === 0) return false;
  const marked = await tx
    .update(messages)
    .set({ isCompacted: true, compactedRound: round.round, compactedAt: sql`now()` })
    .where(
      and(
        eq(messages.sessionId, sessionId),
        isOneOf(round.replaced),
        eq(messages.isCompacted, false),
        isNull(messages.supersededEpoch),
      ),
    );
  const missing = round.replaced.length - (marked.rowCount ?? 0);
  if (missing !== 0) {
    throw new Error(
      `Compaction round ${round.round}: ${missing} of ${round.replaced.length} messages are not in view any more. Nothing was changed.`,
    );
  }
  const sequence = await takeSequences(tx, sessionId, 1);
  await tx.insert(messages).values({
    sessionId,
    sequence,
    position: round.position,
    epoch,
    step,
    slot: `summary:${round.round}`,
    role: "assistant",
    kind: "summary",
    content: [{ type: "text", text: round.summary }],
    tokenCount: round.summaryTokens,
  });
  return true;
}

/** Notes a round that came to nothing; the transcript stays as it is. */
export async function storeFailedRound(
  db: Queryable,
  round: RoundRow & { readonly reason: string },
): Promise<void> {
  await db.insert(compactionEvents).values({ ...eventOf(round), status: "failed", reason: round.reason });
}

/** One parameter, however many there are: a thousand made a round three times slower (measured). */
function isOneOf(sequences: readonly number[]) {
  return sql`${messages.sequence} = any(${`{${sequences.join(",")}}`}::bigint[])`;
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
export async function markPruned(
  db: Queryable,
  sessionId: string,
  step: number,
  sequences: readonly number[],
): Promise<number> {
  if (sequences.length === 0) return 0;
  const marked = await db
    .update(messages)
    .set({ prunedStep: step })
    .where(
      and(
        eq(messages.sessionId, sessionId),
        isOneOf(sequences),
        isNull(messages.prunedStep),
        isNull(messages.supersededEpoch),
      ),
    );
  return marked.rowCount ?? 0;
}
