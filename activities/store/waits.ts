/** Calls of `wait`: until when, what ended them, and which sessions wait now. */
import { and, desc, eq, inArray, isNull, or, sql } from "drizzle-orm";
import { isLive } from "./live-line.ts";
import type { Queryable } from "./db.ts";
import { questions, sessions, toolCalls, waits } from "./schema/index.ts";
import { outputHandle } from "./tool-calls.ts";

export type WaitKind = "time" | "process" | "question";
export type WaitRow = typeof waits.$inferSelect;

/** What a wait is for. `call` identifies the model's call: a run that was reset into the middle of it waits until the same end. */
export interface WaitTarget {
  readonly call: string;
  readonly processes?: readonly string[] | undefined;
  readonly question?: string | undefined;
}

interface WaitPlace {
  readonly sessionId: string;
  readonly epoch: number;
  readonly step: number;
}

/** The live waits of a step. */
export async function waitsOfStep(db: Queryable, { sessionId, step }: WaitPlace): Promise<WaitRow[]> {
  return db
    .select()
    .from(waits)
    .where(and(isLive(waits, sessionId), eq(waits.step, step)));
}

/** The newest row of the same call that an abandoned run left open. */
export async function earlierWait(
  db: Queryable,
  { sessionId, step }: WaitPlace,
  call: string,
): Promise<WaitRow | undefined> {
  const [row] = await db
    .select()
    .from(waits)
    .where(
      and(
        eq(waits.sessionId, sessionId),
        eq(waits.step, step),
        isNull(waits.endedAt),
        sql`${waits.target}->>'call' = ${call}`,
      ),
    )
    .orderBy(desc(waits.epoch))
    .limit(1);
  return row;
}

/** Stores that a wait began. Idempotent by its call. */
export async function openWait(
  db: Queryable,
  wait: typeof waits.$inferInsert & { readonly target: WaitTarget },
): Promise<void> {
  await db.insert(waits).values(wait).onConflictDoNothing();
}

/** @returns false if it had ended before, or there is no such wait */
export async function closeWait(
  db: Queryable,
  { sessionId, epoch, step, index }: WaitPlace & { readonly index: number },
  end: { readonly endedAt: Date; readonly how: string },
): Promise<boolean> {
  const rows = await db
    .update(waits)
    .set(end)
    .where(
      and(
        eq(waits.sessionId, sessionId),
        eq(waits.epoch, epoch),
        eq(waits.step, step),
        eq(waits.callIndex, index),
        isNull(waits.endedAt),
      ),
    )
    .returning({ step: waits.step });
  return rows.length > 0;
}

/** Closes what a run leaves open as it ends. @returns the steps of those */
export async function closeWaits(db: Queryable, sessionId: string, how: string): Promise<number[]> {
  const rows = await db
    .update(waits)
    .set({ endedAt: sql`now()`, how })
    .where(and(isLive(waits, sessionId), isNull(waits.endedAt)))
    .returning({ step: waits.step });
  return rows.map(({ step }) => step);
}

/** Marks a call that was answered by a warning instead of a wait. */
export const WARNED = "warned";

export async function wasWarned(db: Queryable, sessionId: string): Promise<boolean> {
  return (await db.$count(waits, and(isLive(waits, sessionId), eq(waits.how, WARNED)))) > 0;
}

/** Commands in the background by their ids, and whether each runs; undefined for an id that none has. */
export async function backgroundStates(
  db: Queryable,
  sessionId: string,
): Promise<Map<string, "running" | "ended" | "told">> {
  const rows = await db
    .select({ id: outputHandle, state: toolCalls.background })
    .from(toolCalls)
    .where(and(isLive(toolCalls, sessionId), sql`${toolCalls.background} is not null`));
  return new Map(rows.map(({ id, state }) => [id, state as "running" | "ended" | "told"]));
}

/** What a session waits for, as its rows say. */
export interface SessionWait {
  readonly id: string;
  readonly waitsFor: "person" | "budget" | "time" | "process";
  /** ISO time; null if only a person ends it. */
  readonly until: string | null;
  readonly reason: string | null;
}

const WAITS_FOR = { question: "person", process: "process", time: "time" } as const;

/**
 * One row for each of these sessions that waits; a person's question before the model's own wait, if that blocks it: one that does not
 * is waited for only when nothing else is.
 */
export async function sessionWaits(db: Queryable, ids: readonly string[]): Promise<SessionWait[]> {
  const { sessionId, kind, until, reason } = waits;
  const own = await db
    .select({ id: sessionId, kind, until, reason })
    .from(waits)
    .where(and(inArray(sessionId, [...ids]), isNull(waits.supersededEpoch), isNull(waits.endedAt)));
  const openKinds = await db
    .select({ id: questions.sessionId, kind: questions.kind, blocks: questions.blocks })
    .from(questions)
    .innerJoin(sessions, eq(sessions.id, questions.sessionId))
    .where(
      and(
        inArray(questions.sessionId, [...ids]),
        eq(questions.status, "open"),
        or(questions.blocks, eq(sessions.status, "waiting")),
      ),
    );
  const byId = new Map<string, SessionWait>();
  for (const wait of own)
    byId.set(wait.id, {
      id: wait.id,
      waitsFor: WAITS_FOR[wait.kind as WaitKind],
      until: wait.until?.toISOString() ?? null,
      reason: wait.reason,
    });
  for (const question of openKinds.filter(({ id, blocks }) => blocks || !byId.has(id)))
    byId.set(question.id, {
      id: question.id,
      waitsFor: question.kind === "budget" ? "budget" : "person",
      until: null,
      reason: null,
    });
  return [...byId.values()];
}
