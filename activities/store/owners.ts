/** Counts an owner's sessions. */
import { and, eq, isNotNull, isNull, ne, or, sql } from "drizzle-orm";
import type { Queryable } from "./db.ts";
import { sessions } from "./schema/index.ts";
import type { Session } from "./sessions.ts";

/**
 * Other sessions of the same owner that run or wait, delegates not counted. If two begin at the same time, the later one counts
 * the earlier.
 */
export function othersOfOwner(db: Queryable, { id, owner }: Pick<Session, "id" | "owner">): Promise<number> {
  return db.$count(
    sessions,
    and(
      owner === undefined ? isNull(sessions.owner) : eq(sessions.owner, owner),
      isNull(sessions.endedAt),
      isNull(sessions.parentId),
      ne(sessions.id, id),
      or(
        isNotNull(sessions.runId),
        sql`(${sessions.createdAt}, ${sessions.id}) < (select created_at, id from sessions as mine where mine.id = ${id})`,
      ),
    ),
  );
}
