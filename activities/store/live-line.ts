/** A session's live line: its rows that no reset has superseded. */
import { and, eq, isNull, sql, type Column, type Placeholder, type SQL } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";

interface SupersededTable {
  readonly sessionId: Column;
  readonly supersededEpoch: Column;
}

/** Condition for the rows of a session's live line. */
export const isLive = (
  { sessionId, supersededEpoch }: SupersededTable,
  session: string | Placeholder | SQL,
): SQL | undefined => and(eq(sessionId, session), isNull(supersededEpoch));

/** The epochs that superseded a row, and one more. */
export const supersededAlso = ({ supersededBy }: { readonly supersededBy: PgColumn }, epoch: number): SQL =>
  sql`array_append(${supersededBy}, ${epoch})`;

/** Which of a step's rows, or of the calls named by an expression, are in a list of numbers. */
export const isIn = (value: SQL | PgColumn, numbers: readonly number[]): SQL =>
  sql`${value} = any(${sql.param([...numbers])}::int[])`;
