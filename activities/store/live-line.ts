/** A session's live line: its rows that no reset has superseded. */
import { and, eq, isNull, type Column, type Placeholder, type SQL } from "drizzle-orm";

interface SupersededTable {
  readonly sessionId: Column;
  readonly supersededEpoch: Column;
}

/** Condition for the rows of a session's live line. */
export const isLive = (
  { sessionId, supersededEpoch }: SupersededTable,
  session: string | Placeholder | SQL,
): SQL | undefined => and(eq(sessionId, session), isNull(supersededEpoch));
