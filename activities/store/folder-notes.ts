/** Which folders' instructions a session's results have already contained, on the live line. */
import { and, eq, isNotNull, isNull } from "drizzle-orm";
import type { Queryable } from "./db.ts";
import { storedMessages } from "./schema/index.ts";
import type { FolderNotes, MessageMeta } from "./transcript.ts";

export type { FolderNotes };

export async function loadedNotes(db: Queryable, sessionId: string): Promise<FolderNotes[]> {
  const rows = await db
    .select({ meta: storedMessages.meta })
    .from(storedMessages)
    .where(
      and(
        eq(storedMessages.sessionId, sessionId),
        eq(storedMessages.role, "tool"),
        isNotNull(storedMessages.meta),
        isNull(storedMessages.supersededEpoch),
      ),
    );
  return rows.flatMap(({ meta }) => (meta as MessageMeta).notes ?? []);
}
