/** Compaction rounds and prune marks, and the undoing of the newest round. Rows are marked, never deleted (invariant 5). */
import { retryable } from "../contract/failures.ts";
import {
  and,
  desc,
  inArray,
  isNull,
  max,
  ne,
  sql,
  type Placeholder,
  type SQL,
  count,
  eq,
  gt,
} from "drizzle-orm";
import { QueryBuilder } from "drizzle-orm/pg-core";
import { isLive } from "./live-line.ts";
import type { Queryable, Store } from "./db.ts";
import type { NewEvent } from "./event.ts";
import { appendEvents } from "./events.ts";
import { compactionEvents, storedMessages, sessions } from "./schema/index.ts";
import { insertMessage, takeSequences } from "./transcript.ts";
import { addMark, toMultirange, applyMarks } from "./view-marks.ts";
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
    const replaced = toMultirange(round.replaced);
    const inView = await countInView(tx, sessionId, replaced);
    const rows = await tx
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
    if (rows.length === 0) return "there";
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
    await addMark(db, { sessionId, epoch, step, kind: "prune", sequences: toMultirange(hidden), ...by });
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

export interface UndoneRound {
  readonly round: number;
  /** As the round stored them: the size of the view before and after it, in tokens. */
  readonly tokensBefore: number;
  readonly tokensAfter: number;
  readonly strategy: string;
  /** How many messages are in view again. */
  readonly restored: number;
}

interface Undoing {
  readonly id: string;
  readonly epoch: number;
  /** The step that comes next. */
  readonly step: number;
}

/**
 * To be called inside a transaction that has locked the session. Rows are marked, none is deleted: the event becomes
 * `undone`, and its number is never used again. The billed usage of requests with the summary does not apply to the
 * restored view, so the size is estimated until the next answer.
 * Idempotent by `requestId`: a repeated request returns the compaction that it undid. @returns undefined if none is left
 */
async function undoRound(tx: Queryable, at: Undoing, requestId: string): Promise<UndoneRound | undefined> {
  const { id: sessionId } = at;
  const reason = `undone by request ${requestId}`;
  const ofSession = isLive(compactionEvents, sessionId);
  const [row] = await tx
    .select()
    .from(compactionEvents)
    .where(and(ofSession, eq(compactionEvents.reason, reason)));
  if (row !== undefined) return { ...row, restored: 0 };
  const [newest] = await tx
    .select()
    .from(compactionEvents)
    .where(and(ofSession, eq(compactionEvents.status, "compacted")))
    .orderBy(desc(compactionEvents.round))
    .limit(1);
  if (newest === undefined) return undefined;
  const { round } = newest;
  const live = isLive(storedMessages, sessionId);
  const [summary] = await tx
    .select({ sequence: storedMessages.sequence })
    .from(storedMessages)
    .where(and(live, eq(storedMessages.slot, `summary:${round}`)));
  const [restored] = await tx
    .select({ count: count() })
    .from(storedMessages)
    .where(and(live, sql`${storedMessages.sequence} <@ ${newest.replaced}::int8multirange`));
  // The rows that it had replaced are in view again, and its own summary is not.
  const { epoch, step } = at;
  await addMark(tx, {
    sessionId,
    epoch,
    step,
    kind: "undo",
    round,
    roundEpoch: newest.epoch,
    sequences: newest.replaced ?? "{}",
    requestId,
  });
  await applyMarks(tx, sessionId);
  if (summary !== undefined) {
    await tx
      .update(storedMessages)
      .set({ meta: sql`(${storedMessages.meta}::jsonb - 'usage')::json` })
      .where(
        and(
          live,
          gt(storedMessages.sequence, summary.sequence),
          sql`${storedMessages.meta}->'usage' is not null`,
        ),
      );
  }
  return { ...newest, restored: restored?.count ?? 0 };
}

/** Undoes the newest compaction and announces it to watchers. To be called inside a transaction that has locked the session. */
export async function undoAndAnnounce(
  tx: Queryable,
  at: Undoing,
  requestId: string,
): Promise<UndoneRound | undefined> {
  const undone = await undoRound(tx, at, requestId);
  if (undone === undefined || undone.restored === 0) return undone;
  const { round, strategy, tokensBefore, tokensAfter, restored } = undone;
  await appendEvents(tx, at.id, at.epoch, [
    {
      type: "context:compressed",
      step: at.step,
      data: {
        round,
        strategy,
        trigger: "undo",
        tokensBefore: tokensAfter,
        tokensAfter: tokensBefore,
        messages: restored,
        status: "undone",
        reason: null,
      },
    },
  ]);
  return undone;
}

/** For a session that is not running, so that there is no other writer: the row's lock delays a resume meanwhile. */
export async function undoWhileEnded(
  { db }: Pick<Store, "db">,
  at: Undoing,
  requestId: string,
): Promise<UndoneRound | undefined> {
  return db.transaction(async (tx) => {
    await tx.select({ id: sessions.id }).from(sessions).where(eq(sessions.id, at.id)).for("update");
    return undoAndAnnounce(tx, at, requestId);
  });
}
