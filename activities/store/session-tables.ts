/** Which tables have rows of sessions. */
import { getTableColumns, is } from "drizzle-orm";
import { PgTable } from "drizzle-orm/pg-core";
import * as schema from "./schema/index.ts";

type SessionTable = PgTable & { readonly sessionId: typeof schema.runs.sessionId };

/** Each table that has rows of one session. New tables are included automatically. */
export function sessionTables(): SessionTable[] {
  const all: readonly unknown[] = Object.values(schema);
  return all.filter(isSessionTable);
}

/** A batch's item outlives its session. */
function isSessionTable(table: unknown): table is SessionTable {
  return table !== schema.batchItems && is(table, PgTable) && "sessionId" in getTableColumns(table);
}
