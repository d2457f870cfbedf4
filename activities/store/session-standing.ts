/** What the clean-up must know of a session to compare its row with Temporal's runs. */
import { and, desc, eq, inArray, isNotNull, isNull, lt, sql } from "drizzle-orm";
import type { Queryable } from "./db.ts";
import { events, sessions } from "./schema/index.ts";
import { anyOf } from "./statements.ts";

export interface SessionStanding {
  /** The newest run, if it ever had one. */
  readonly runId: string | null;
  readonly hasEnded: boolean;
  /** Temporal's namespace that it was started in; null if an older version started it. */
  readonly namespace: string | null;
  readonly isDelegate: boolean;
  /** Since its row changed, by the database's clock. */
  readonly unchangedMs: number;
}

export async function standingOf(db: Queryable, id: string): Promise<SessionStanding | undefined> {
  const [row] = await db
    .select({
      runId: sessions.runId,
      hasEnded: sql<boolean>`${sessions.endedAt} is not null`,
      namespace: sessions.namespace,
      isDelegate: sql<boolean>`${sessions.parentId} is not null`,
      unchangedMs: sql<number>`(1000 * extract(epoch from now() - ${sessions.updatedAt}))::float8`,
    })
    .from(sessions)
    .where(eq(sessions.id, id));
  return row;
}

/** Which of these sessions have ended, according to their rows. */
export async function endedSessionIds(db: Queryable, ids: readonly string[]): Promise<string[]> {
  if (ids.length === 0) return [];
  const rows = await db
    .select({ id: sessions.id })
    .from(sessions)
    .where(and(inArray(sessions.id, [...ids]), isNotNull(sessions.endedAt)));
  return rows.map(({ id }) => id);
}

/** Open sessions of these whose last event is a minute old, with its number. A session waits for a person, or works silently. */
export async function quietSessions(
  db: Queryable,
  ids: readonly string[],
): Promise<{ readonly id: string; readonly seq: number }[]> {
  if (ids.length === 0) return [];
  const newest = db
    .select({ seq: events.seq, at: events.at })
    .from(events)
    .where(eq(events.sessionId, sessions.id))
    .orderBy(desc(events.seq))
    .limit(1)
    .as("newest");
  return db
    .select({ id: sessions.id, seq: newest.seq })
    .from(sessions)
    .crossJoinLateral(newest)
    .where(
      and(anyOf(sessions.id, ids), isNull(sessions.endedAt), lt(newest.at, sql`now() - interval '1 minute'`)),
    );
}

export interface OpenRow {
  readonly id: string;
  readonly runId: string | null;
  /** Stored less than a minute ago: its run may be about to start. */
  readonly isFresh: boolean;
}

/** Sessions that have not ended, newest first. */
export function openRows(db: Queryable, limit: number): Promise<OpenRow[]> {
  return db
    .select({
      id: sessions.id,
      runId: sessions.runId,
      isFresh: sql<boolean>`${sessions.createdAt} > now() - interval '1 minute'`,
    })
    .from(sessions)
    .where(isNull(sessions.endedAt))
    .orderBy(desc(sessions.createdAt))
    .limit(limit);
}

/** Of those ids, the sessions that have ended, each with the run that ended it. */
export async function endedRuns(
  db: Queryable,
  ids: readonly string[],
): Promise<ReadonlyMap<string, string | null>> {
  if (ids.length === 0) return new Map();
  const rows = await db
    .select({ id: sessions.id, runId: sessions.runId })
    .from(sessions)
    .where(and(inArray(sessions.id, [...ids]), isNotNull(sessions.endedAt)));
  return new Map(rows.map(({ id, runId }) => [id, runId]));
}
