/** Whether the database's tables are newer than this code, as when a deploy has migrated them and an old worker still runs. */
import { readFileSync } from "node:fs";
import { sql } from "drizzle-orm";
import type { Queryable } from "./db.ts";

/** Read when the code is loaded: a deploy may replace the files under a running worker. */
const NEWEST_KNOWN = newestOf(
  JSON.parse(readFileSync(new URL("./migrations/meta/_journal.json", import.meta.url), "utf8")) as Journal,
);

interface Journal {
  /** `when` is in ms; the migrator writes it to `created_at` of what it has applied. */
  readonly entries: readonly { readonly when: number }[];
}

function newestOf({ entries }: Journal): number {
  return Math.max(...entries.map(({ when }) => when));
}

/** @returns false also if Postgres does not answer the query: the original failure is then reported unchanged */
export async function hasNewerTables(db: Queryable): Promise<boolean> {
  try {
    // Of the library's own table, which is not in the schema.
    const { rows } = await db.execute<{ newest: string | null }>(
      sql`select max(${sql.identifier("created_at")})::text as newest from longhaul_migrations`,
    );
    return Number(rows[0]?.newest ?? 0) > NEWEST_KNOWN;
  } catch {
    return false;
  }
}
