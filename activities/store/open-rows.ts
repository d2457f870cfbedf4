/** Which sessions are open according to Postgres, for a comparison with what Temporal runs. */
import { and, desc, inArray, isNotNull, isNull, sql } from "drizzle-orm";
import type { Queryable } from "./db.ts";
import { sessions } from "./schema/index.ts";

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
