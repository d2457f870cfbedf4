/** Undoes the newest compaction round: its summary leaves the view, and the rows that it had replaced return. */
import { and, count, desc, eq, gt, sql } from "drizzle-orm";
import { isLive } from "./live-line.ts";
import type { Queryable, Store } from "./db.ts";
import { appendEvents } from "./events.ts";
import { compactionEvents, sessions, storedMessages } from "./schema/index.ts";
import { addMark, applyMarks } from "./view-marks.ts";

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
  const mine = isLive(compactionEvents, sessionId);
  const [done] = await tx
    .select()
    .from(compactionEvents)
    .where(and(mine, eq(compactionEvents.reason, reason)));
  if (done !== undefined) return { ...done, restored: 0 };
  const [newest] = await tx
    .select()
    .from(compactionEvents)
    .where(and(mine, eq(compactionEvents.status, "compacted")))
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
