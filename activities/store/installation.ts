/** Which installation this database is: on its sandboxes' labels, and in the memo of its runs. */
import { sql } from "drizzle-orm";
import type { Queryable } from "./db.ts";

/** The id of this database's installation, made when it is first asked for. A client's role may ask too, but not choose it. */
export async function readInstallation(db: Pick<Queryable, "execute">): Promise<string> {
  const { rows } = await db.execute<{ made: string }>(sql`select longhaul_installation() as made`);
  return rows[0]?.made ?? "";
}
