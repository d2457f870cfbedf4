/**
 * The ids of a run's trace, by hash: any worker can refer to a parent span that another worker writes, even later. A trace is
 * a run; a delegate's runs belong to the trace of the run that delegated.
 */
import { createHash } from "node:crypto";
import { and, asc, desc, eq, gte, inArray, lte, sql } from "drizzle-orm";
import type { Queryable } from "./db.ts";
import { events, runs, sessions } from "./schema/index.ts";

export interface Trace {
  /** 32 hex characters. */
  readonly traceId: string;
  /** Id of the run's own span: 16 hex characters. */
  readonly rootId: string;
  /** For a delegate: the call of the parent's run that waits for this run. */
  readonly parentId?: string;
}

const hash = (parts: readonly unknown[]): string =>
  createHash("sha256").update(JSON.stringify(parts)).digest("hex");

/** @param parts session, run, and the operation in it */
export const toSpanId = (...parts: readonly unknown[]): string => hash(["span", ...parts]).slice(0, 16);

/** Without the attempt, as a call has one span, and a delegate refers to its parent's span before that is written. */
export const callSpanId = (sessionId: string, runId: string, callKey: string): string =>
  toSpanId(sessionId, runId, callKey);

/** The header for other services (W3C): always marked as sampled, since unsampled runs have no trace. */
export const toTraceparent = ({ traceId }: Trace, spanId: string): string => `00-${traceId}-${spanId}-01`;

export async function traceOf(
  db: Queryable,
  { id: sessionId, parentId }: { readonly id: string; readonly parentId?: string | null | undefined },
  runId: string,
): Promise<Trace> {
  const rootId = toSpanId(sessionId, runId, "root");
  const parent = parentId == null ? undefined : await waitingCall(db, sessionId);
  if (parent === undefined) return { traceId: traceIdOf(sessionId, runId), rootId };
  return {
    traceId: traceIdOf(parent.sessionId, parent.runId),
    rootId,
    parentId: callSpanId(parent.sessionId, parent.runId, parent.call),
  };
}

const traceIdOf = (sessionId: string, runId: string): string =>
  hash(["trace", sessionId, runId]).slice(0, 32);

/** The call that a delegate works for, in the run that was in charge when the call was made. */
async function waitingCall(db: Queryable, sessionId: string) {
  const [row] = await db
    .select({ sessionId: runs.sessionId, runId: runs.runId, call: sessions.parentCall })
    .from(sessions)
    .innerJoin(runs, and(eq(runs.sessionId, sessions.parentId), lte(runs.startedAt, sessions.createdAt)))
    .where(eq(sessions.id, sessionId))
    .orderBy(desc(runs.ordinal))
    .limit(1);
  return row && { ...row, call: row.call ?? "" };
}

export interface TracedRun {
  readonly startedAt: Date;
  /** The session's previous run. */
  readonly previous: string | undefined;
}

export async function tracedRun(
  db: Queryable,
  sessionId: string,
  runId: string,
): Promise<TracedRun | undefined> {
  const rows = await db
    .select({ runId: runs.runId, startedAt: runs.startedAt })
    .from(runs)
    .where(eq(runs.sessionId, sessionId))
    .orderBy(asc(runs.ordinal));
  const index = rows.findIndex((row) => row.runId === runId);
  const row = rows[index];
  return row && { startedAt: row.startedAt, previous: rows[index - 1]?.runId };
}

const TRACED = ["question:asked", "question:answered", "session:ended"] as const;

/** Events that a run's span needs: questions, and the run's end. */
export async function tracedEvents(
  db: Queryable,
  sessionId: string,
  from: Date,
): Promise<{ readonly type: string; readonly at: Date; readonly id: string | null }[]> {
  return db
    .select({ type: events.type, at: events.at, id: sql<string | null>`${events.data}->>'id'` })
    .from(events)
    .where(and(eq(events.sessionId, sessionId), inArray(events.type, [...TRACED]), gte(events.at, from)))
    .orderBy(asc(events.seq));
}
