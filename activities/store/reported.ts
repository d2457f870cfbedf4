/** Which one-time notices a session's events already contain. */
import { and, eq, sql } from "drizzle-orm";
import type { Queryable } from "./db.ts";
import { events } from "./schema/index.ts";

/** Whether an answer's one-time notice was already stored for this session, such as that token counts are implausible. */
export async function wasReported(
  db: Queryable,
  sessionId: string,
  what: "usageDoubtful" | "summaryRefused",
): Promise<boolean> {
  const rows = await db
    .select({ seq: events.seq })
    .from(events)
    .where(and(isAnswerOf(sessionId), sql`${events.data}->>${what} = 'true'`))
    .limit(1);
  return rows.length > 0;
}

/** Names of the tools that were already reported as refused by a provider. */
export async function reportedTools(db: Queryable, sessionId: string): Promise<string[]> {
  const rows = await db
    .select({ names: sql<string[]>`${events.data}->'refusedTools'` })
    .from(events)
    .where(and(isAnswerOf(sessionId), sql`${events.data}->'refusedTools' is not null`));
  return rows.flatMap(({ names }) => names);
}

/** Which parts of the conversation were already reported as not sent to the model. */
export async function reportedParts(db: Queryable, sessionId: string): Promise<string[]> {
  const rows = await db
    .select({ message: sql<string>`${events.data}->>'message'` })
    .from(events)
    .where(and(eq(events.sessionId, sessionId), eq(events.type, "llm:unsupported-input")));
  return rows.map(({ message }) => message);
}

const isAnswerOf = (sessionId: string) =>
  and(eq(events.sessionId, sessionId), eq(events.type, "llm:response"));
