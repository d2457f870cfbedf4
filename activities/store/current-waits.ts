/** Until when sessions wait for their model's provider. */
import { sql } from "drizzle-orm";
import type { Database } from "./db.ts";
import type { EventType } from "./event.ts";

/** Sessions whose newest request failed and is made again at a time that has not come. */
export async function currentWaits(
  db: Database,
  ids: readonly string[],
): Promise<{ id: string; until: string }[]> {
  const failed = "llm:error" satisfies EventType;
  const others = ["step:started", "llm:response", "session:started", "session:ended"] satisfies EventType[];
  const { rows } = await db.execute<{ id: string; until: Date | string }>(sql`
    select s.id, e.until from sessions s cross join lateral (
      select at + (data->>'retryInMs')::float8 * interval '1 ms' as until from events
      where session_id = s.id and type = any(${sql.param([failed, ...others])}::text[])
      order by seq desc limit 1) as e
    where s.id = any(${sql.param([...ids])}::text[]) and s.ended_at is null and e.until > now()`);
  return rows.map(({ id, until }) => ({ id, until: new Date(until).toISOString() }));
}
