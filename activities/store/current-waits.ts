/** Until when sessions wait for their model's provider. */
import { and, desc, eq, gt, inArray, isNull, sql } from "drizzle-orm";
import type { Database } from "./db.ts";
import type { EventType } from "./event.ts";
import { events, sessions } from "./schema/index.ts";
import { anyOf } from "./statements.ts";

/** Sessions whose newest request failed and is made again at a time that has not come. */
export async function currentWaits(
  db: Database,
  ids: readonly string[],
): Promise<{ id: string; until: string }[]> {
  const failed = "llm:error" satisfies EventType;
  const others = ["step:started", "llm:response", "session:started", "session:ended"] satisfies EventType[];
  const last = db
    .select({
      until: sql<string>`${events.at} + (${events.data}->>'retryInMs')::float8 * interval '1 ms'`.as("until"),
    })
    .from(events)
    .where(and(eq(events.sessionId, sessions.id), inArray(events.type, [failed, ...others])))
    .orderBy(desc(events.seq))
    .limit(1)
    .as("last");
  const rows = await db
    .select({ id: sessions.id, until: last.until })
    .from(sessions)
    .crossJoinLateral(last)
    .where(and(anyOf(sessions.id, ids), isNull(sessions.endedAt), gt(last.until, sql`now()`)));
  return rows.map(({ id, until }) => ({ id, until: new Date(until).toISOString() }));
}
