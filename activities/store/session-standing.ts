/** Where a session stands by its rows, to compare it with Temporal's runs, and what a stopped step leaves. Writes nothing. */
import { and, desc, eq, inArray, isNotNull, isNull, lt, sql, gte } from "drizzle-orm";
import type { Queryable } from "./db.ts";
import { events, sessions, storedMessages, toolCalls } from "./schema/index.ts";
import { equalsAny } from "./statements.ts";
import { isLive } from "./live-line.ts";

export interface SessionStanding {
  /** The newest run, if it ever had one. */
  readonly runId: string | null;
  readonly hasEnded: boolean;
  /** Temporal's namespace that it was started in; null until a run has claimed it. */
  readonly namespace: string | null;
  readonly isDelegate: boolean;
  /** Since its row changed, by the database's clock. */
  readonly unchangedMs: number;
}

export async function standingOf(db: Queryable, id: string): Promise<SessionStanding | undefined> {
  const [row] = await db
    .select({
      runId: sessions.runId,
      hasEnded: sql<boolean>`${sessions.endedAt} is not null`,
      namespace: sessions.namespace,
      isDelegate: sql<boolean>`${sessions.parentId} is not null`,
      unchangedMs: sql<number>`(1000 * extract(epoch from now() - ${sessions.updatedAt}))::float8`,
    })
    .from(sessions)
    .where(eq(sessions.id, id));
  return row;
}

/** Which of these sessions have ended, according to their rows. */
export async function endedSessionIds(db: Queryable, ids: readonly string[]): Promise<string[]> {
  if (ids.length === 0) return [];
  const rows = await db
    .select({ id: sessions.id })
    .from(sessions)
    .where(and(inArray(sessions.id, [...ids]), isNotNull(sessions.endedAt)));
  return rows.map(({ id }) => id);
}

/** Open sessions of these whose last event is a minute old, with its number. A session waits for a person, or works silently. */
export async function quietSessions(
  db: Queryable,
  ids: readonly string[],
): Promise<{ readonly id: string; readonly seq: number }[]> {
  if (ids.length === 0) return [];
  const newest = db
    .select({ seq: events.seq, at: events.at })
    .from(events)
    .where(eq(events.sessionId, sessions.id))
    .orderBy(desc(events.seq))
    .limit(1)
    .as("newest");
  return db
    .select({ id: sessions.id, seq: newest.seq })
    .from(sessions)
    .crossJoinLateral(newest)
    .where(
      and(
        equalsAny(sessions.id, ids),
        isNull(sessions.endedAt),
        lt(newest.at, sql`now() - interval '1 minute'`),
      ),
    );
}

export interface OpenRow {
  readonly id: string;
  readonly runId: string | null;
  /** Stored less than a minute ago: its run may be about to start. */
  readonly isFresh: boolean;
}

/** Sessions that have not ended, newest first. */
export function openRows(db: Queryable, limit: number): Promise<OpenRow[]> {
  return db
    .select({
      id: sessions.id,
      runId: sessions.runId,
      isFresh: sql<boolean>`${sessions.createdAt} > now() - interval '1 minute'`,
    })
    .from(sessions)
    .where(isNull(sessions.endedAt))
    .orderBy(desc(sessions.createdAt))
    .limit(limit);
}

/** Of those ids, the sessions that have ended, each with the run that ended it. */
export async function endedRuns(
  db: Queryable,
  ids: readonly string[],
): Promise<ReadonlyMap<string, string | null>> {
  if (ids.length === 0) return new Map();
  const rows = await db
    .select({ id: sessions.id, runId: sessions.runId })
    .from(sessions)
    .where(and(inArray(sessions.id, [...ids]), isNotNull(sessions.endedAt)));
  return new Map(rows.map(({ id, runId }) => [id, runId]));
}

export interface Kept {
  /** What was in progress and is kept. */
  readonly kept: "partial text" | "tools in progress" | "nothing";
  /** The step it belongs to; null for nothing. */
  readonly step: number | null;
  /** The model's text up to the stop, marked as interrupted. */
  readonly text: string | null;
  readonly tools: readonly { readonly name: string; readonly outcome: string }[];
}

const NOTHING: Kept = { kept: "nothing", step: null, text: null, tools: [] };

/** The time by the database's clock, as `readKept` expects it. */
export async function databaseNow(db: Queryable): Promise<Date> {
  const { rows } = await db.execute<{ now: string }>(sql`select clock_timestamp()::text as now`);
  return new Date(rows[0]?.now ?? 0);
}

/** What was kept of the step that was stopped after the given time of the database's clock. */
export async function readKept(db: Queryable, sessionId: string, since: Date): Promise<Kept> {
  const [row] = await db
    .select({ step: storedMessages.step, content: storedMessages.content })
    .from(storedMessages)
    .where(
      and(
        isLive(storedMessages, sessionId),
        eq(storedMessages.slot, "assistant"),
        gte(storedMessages.createdAt, since),
        sql`${storedMessages.meta}->>'finish' = 'interrupted'`,
      ),
    )
    .orderBy(desc(storedMessages.sequence))
    .limit(1);
  if (row) return { ...NOTHING, kept: "partial text", step: row.step, text: textOf(row.content) };
  const calls = await db
    .select({ step: toolCalls.step, name: toolCalls.name, outcome: toolCalls.status })
    .from(toolCalls)
    .where(
      and(
        isLive(toolCalls, sessionId),
        gte(toolCalls.finishedAt, since),
        inArray(toolCalls.status, ["interrupted", "unknown"]),
      ),
    )
    .orderBy(toolCalls.sequence);
  const [first] = calls;
  if (!first) return NOTHING;
  const tools = calls.map(({ name, outcome }) => ({ name, outcome }));
  return { ...NOTHING, kept: "tools in progress", step: first.step, tools };
}

function textOf(content: unknown): string {
  if (!Array.isArray(content)) return "";
  return content
    .map((part: { type?: string; text?: string }) => (part.type === "text" ? (part.text ?? "") : ""))
    .join("");
}
