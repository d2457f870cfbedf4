/** Followed pull requests: where each stands, what its session was told, and what came of that. */
import { and, asc, eq, getTableColumns, inArray, isNotNull, isNull, sql } from "drizzle-orm";
import type { FollowState, PullRequestEnd } from "../contract/follow.ts";
import type { Queryable } from "./db.ts";
import { isLive } from "./live-line.ts";
import type { MessageSpan } from "./transcript.ts";
import { follows, followReplies, followRounds, guidance, sessions, toolCalls } from "./schema/index.ts";

export type FollowRow = typeof follows.$inferSelect & { readonly state: FollowState };
export type FollowRound = typeof followRounds.$inferSelect;

export async function findFollow(db: Queryable, sessionId: string): Promise<FollowRow | undefined> {
  const [row] = await db.select().from(follows).where(eq(follows.sessionId, sessionId));
  return row as FollowRow | undefined;
}

/** Those of these sessions that have, or had, a follower. */
export async function listFollows(db: Queryable, sessionIds: readonly string[]): Promise<FollowRow[]> {
  const rows = await db
    .select()
    .from(follows)
    .where(inArray(follows.sessionId, [...sessionIds]));
  return rows as FollowRow[];
}

type NewFollow = Pick<
  typeof follows.$inferInsert,
  | "sessionId"
  | "forge"
  | "project"
  | "number"
  | "url"
  | "branch"
  | "roundsFrom"
  | "roundsUpTo"
  | "maxCostUsd"
  | "openedAt"
  | "heardFrom"
  | "until"
  | "posts"
>;

/**
 * Begins to follow, or again after an end or a pause; rounds that were told stay.
 * @returns the session that follows the same pull request already; undefined if there is none other
 */
export async function beginFollow(tx: Queryable, row: NewFollow): Promise<string | undefined> {
  const [other] = await tx
    .select({ id: follows.sessionId })
    .from(follows)
    .where(
      and(
        eq(follows.forge, row.forge),
        eq(follows.project, row.project),
        eq(follows.number, row.number),
        isNull(follows.endedAt),
        sql`${follows.sessionId} <> ${row.sessionId}`,
      ),
    );
  if (other !== undefined) return other.id;
  const { sessionId: _sessionId, openedAt: _openedAt, ...renewed } = row;
  const begun = { state: "following", reason: null, endedAt: null, lostAt: null, quietLooks: 0 };
  await tx
    .insert(follows)
    .values(row)
    .onConflictDoUpdate({ target: follows.sessionId, set: { ...renewed, ...begun } });
  return undefined;
}

export async function updateFollow(
  db: Queryable,
  sessionId: string,
  changes: Partial<Omit<typeof follows.$inferInsert, "sessionId">>,
): Promise<void> {
  await db.update(follows).set(changes).where(eq(follows.sessionId, sessionId));
}

/** All bounds count from now on. @returns how it stands then; undefined if it has ended */
export async function renewFollow(
  tx: Queryable,
  sessionId: string,
  { rounds, until }: { readonly rounds: number; readonly until: Date },
): Promise<FollowRow | undefined> {
  const [row] = await tx
    .update(follows)
    .set({
      state: "following",
      reason: null,
      roundsFrom: follows.rounds,
      roundsUpTo: sql`${follows.rounds} + ${rounds}`,
      until: sql`greatest(${follows.until}, ${until.toISOString()}::timestamptz)`,
    })
    .where(and(eq(follows.sessionId, sessionId), isNull(follows.endedAt)))
    .returning();
  return row as FollowRow | undefined;
}

/** @returns false if it was paused, or had ended, before */
export async function pauseFollow(tx: Queryable, sessionId: string, reason: string): Promise<boolean> {
  const rows = await tx
    .update(follows)
    .set({ state: "paused", reason })
    .where(and(eq(follows.sessionId, sessionId), eq(follows.state, "following")))
    .returning({ id: follows.sessionId });
  return rows.length > 0;
}

/** A comment of ours is on the forge. */
export async function addPost(db: Queryable, sessionId: string, post: string): Promise<void> {
  await db
    .update(follows)
    .set({ posts: sql`array_append(${follows.posts}, ${post})` })
    .where(and(eq(follows.sessionId, sessionId), sql`not ${post} = any(${follows.posts})`));
}

/** @returns false if it had ended before */
export async function endFollow(
  tx: Queryable,
  sessionId: string,
  { end, why }: { readonly end: PullRequestEnd; readonly why: string | undefined },
): Promise<boolean> {
  const rows = await tx
    .update(follows)
    .set({ state: end, reason: why ?? null, endedAt: sql`now()`, nextLookAt: null })
    .where(and(eq(follows.sessionId, sessionId), isNull(follows.endedAt)))
    .returning({ id: follows.sessionId });
  return rows.length > 0;
}

/** Oldest first. */
export function listFollowRounds(db: Queryable, sessionId: string): Promise<FollowRound[]> {
  return db
    .select()
    .from(followRounds)
    .where(eq(followRounds.sessionId, sessionId))
    .orderBy(asc(followRounds.number));
}

/** @returns false if a round is open, or this one was told before */
export async function beginRound(
  tx: Queryable,
  row: Omit<typeof followRounds.$inferInsert, "toldAt">,
): Promise<boolean> {
  const { sessionId, number } = row;
  // One after the other: whoever decides at the same time waits here.
  await tx
    .select({ id: follows.sessionId })
    .from(follows)
    .where(eq(follows.sessionId, sessionId))
    .for("update");
  const open = await tx.$count(
    followRounds,
    and(eq(followRounds.sessionId, sessionId), isNull(followRounds.endedAt)),
  );
  if (open > 0) return false;
  const rows = await tx
    .insert(followRounds)
    .values(row)
    .onConflictDoNothing()
    .returning({ number: followRounds.number });
  if (rows.length === 0) return false;
  await tx.update(follows).set({ rounds: number }).where(eq(follows.sessionId, sessionId));
  return true;
}

/** @returns false if it had ended before */
export async function endRound(
  tx: Queryable,
  { sessionId, number }: Pick<FollowRound, "sessionId" | "number">,
  end: Pick<FollowRound, "outcome" | "pushed" | "costUsd">,
): Promise<boolean> {
  const rows = await tx
    .update(followRounds)
    .set({ ...end, endedAt: sql`now()` })
    .where(
      and(
        eq(followRounds.sessionId, sessionId),
        eq(followRounds.number, number),
        isNull(followRounds.endedAt),
      ),
    )
    .returning({ number: followRounds.number });
  return rows.length > 0;
}

export type FollowReplyRow = typeof followReplies.$inferSelect;

/** The last one for a target counts. Idempotent. */
export async function saveReply(db: Queryable, row: FollowReplyRow): Promise<void> {
  const { text, outcome, epoch, step, callIndex } = row;
  await db
    .insert(followReplies)
    .values(row)
    .onConflictDoUpdate({
      target: [followReplies.sessionId, followReplies.round, followReplies.kind, followReplies.target],
      set: { text, outcome, epoch, step, callIndex },
    });
}

/** What a round's calls want, without those that a reset has left. */
export function listReplies(
  db: Queryable,
  { sessionId, number }: Pick<FollowRound, "sessionId" | "number">,
): Promise<FollowReplyRow[]> {
  return db
    .select(getTableColumns(followReplies))
    .from(followReplies)
    .innerJoin(
      toolCalls,
      and(
        isLive(toolCalls, sessionId),
        eq(toolCalls.epoch, followReplies.epoch),
        eq(toolCalls.step, followReplies.step),
        eq(toolCalls.index, followReplies.callIndex),
      ),
    )
    .where(and(eq(followReplies.sessionId, sessionId), eq(followReplies.round, number)))
    .orderBy(asc(followReplies.kind), asc(followReplies.target));
}

/** What the round wanted is done. */
export async function setAnswered(
  tx: Queryable,
  { sessionId, number }: Pick<FollowRound, "sessionId" | "number">,
): Promise<void> {
  await tx
    .update(followRounds)
    .set({ answeredAt: sql`now()` })
    .where(and(eq(followRounds.sessionId, sessionId), eq(followRounds.number, number)));
}

/** How a session stands towards a message of its follower. */
export interface FollowedSession {
  /** Its status and when, once its run has ended; null while a run is on. */
  readonly ended: string | null;
  readonly endedAt: Date | null;
  /** `waits`: no run has read it. `gone`: a person has taken it back. */
  readonly message: "waits" | "read" | "gone";
}

/** The parts of the conversation that begin with a round's message, up to what a person says next. */
export async function roundSpans(
  db: Queryable,
  sessionId: string,
  isOfRound: (messageId: string) => boolean,
): Promise<MessageSpan[]> {
  const rows = await db
    .select({ id: guidance.id, sequence: guidance.deliveredSequence })
    .from(guidance)
    .where(and(eq(guidance.sessionId, sessionId), isNotNull(guidance.deliveredSequence)))
    .orderBy(asc(guidance.deliveredSequence));
  return rows.flatMap(({ id, sequence }, index) => {
    if (sequence === null || !isOfRound(id)) return [];
    const next = rows.slice(index + 1).find((row) => !isOfRound(row.id) && row.sequence !== sequence);
    return [{ from: sequence, to: next?.sequence ?? undefined }];
  });
}

/** Whether a run of the session is on. */
export async function isRunning(db: Queryable, sessionId: string): Promise<boolean> {
  return (await db.$count(sessions, and(eq(sessions.id, sessionId), isNull(sessions.endedAt)))) > 0;
}

/** @returns undefined if there is no such session */
export async function standingOfFollowed(
  db: Queryable,
  sessionId: string,
  messageId: string,
): Promise<FollowedSession | undefined> {
  const [row] = await db
    .select({
      status: sessions.status,
      endedAt: sessions.endedAt,
      deliveredAt: guidance.deliveredSequence,
      dropped: guidance.dropped,
      id: guidance.id,
    })
    .from(sessions)
    .leftJoin(guidance, and(eq(guidance.sessionId, sessions.id), eq(guidance.id, messageId)))
    .where(eq(sessions.id, sessionId));
  if (row === undefined) return undefined;
  const isGone = row.id === null || row.dropped === true;
  const unread = isGone ? "gone" : "waits";
  return {
    ended: row.endedAt === null ? null : row.status,
    endedAt: row.endedAt,
    message: row.deliveredAt === null ? unread : "read",
  };
}
