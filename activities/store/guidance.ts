/** People's messages: parked while no run can accept them, identified by their ids, delivered once, and again after a reset. */
import { and, asc, eq, gt, inArray, isNull, sql } from "drizzle-orm";
import type { UserPart } from "../contract/message.ts";
import type { Guidance } from "../contract/guidance.ts";
import type { Queryable } from "./db.ts";
import { isLive } from "./live-line.ts";
import { guidance, storedMessages } from "./schema/index.ts";
import { anyOf, excluded } from "./statements.ts";
import type { MessageMeta } from "./transcript.ts";

/** Condition for the messages that no run has delivered and no one has withdrawn. */
export const isParked = (sessionId: string) =>
  and(eq(guidance.sessionId, sessionId), isNull(guidance.deliveredSequence), eq(guidance.dropped, false));

/** Keeps messages until a run delivers them. Idempotent by client id: a delivered or dropped message stays so. */
export async function parkGuidance(
  db: Queryable,
  sessionId: string,
  items: readonly Guidance[],
): Promise<void> {
  if (items.length === 0) return;
  await db
    .insert(guidance)
    .values(items.map((item) => rowOf(sessionId, item)))
    .onConflictDoNothing();
}

const rowOf = (sessionId: string, { id, parts, queuedAt, by }: Guidance) => ({
  sessionId,
  id,
  parts,
  queuedAt,
  author: by ?? null,
});

/** Parked messages that were not delivered, oldest first, at most `limit`. */
export async function parkedGuidance(db: Queryable, sessionId: string, limit: number): Promise<Guidance[]> {
  const rows = await db
    .select()
    .from(guidance)
    .where(isParked(sessionId))
    .orderBy(asc(guidance.ordinal))
    .limit(limit);
  return rows.map(({ id, parts, queuedAt, author }) => ({
    id,
    parts: parts as UserPart[],
    queuedAt,
    ...(author === null ? {} : { by: author }),
  }));
}

export async function countParked(db: Queryable, sessionId: string): Promise<number> {
  return db.$count(guidance, isParked(sessionId));
}

/** Withdraws a parked message, unless a step already has it. @returns false if it is not parked */
export async function dropParked(db: Queryable, sessionId: string, id: string): Promise<boolean> {
  const { rowCount } = await db
    .update(guidance)
    .set({ dropped: true })
    .where(and(isParked(sessionId), eq(guidance.id, id)));
  return (rowCount ?? 0) > 0;
}

/** Which of the messages with these ids the live transcript already has, and where: id to sequence. */
export async function deliveredGuidance(
  db: Queryable,
  sessionId: string,
  ids: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  if (ids.length === 0) return new Map();
  const carried = sql<string>`carried.value`;
  const rows = await db
    .select({ id: carried, sequence: storedMessages.sequence })
    .from(storedMessages)
    .crossJoinLateral(sql`json_array_elements_text(${storedMessages.meta}->'ids') as carried(value)`)
    .where(and(isLive(storedMessages, sessionId), eq(storedMessages.kind, "guidance"), anyOf(carried, ids)));
  return new Map(rows.map(({ id, sequence }) => [id, sequence]));
}

export interface StepSoFar {
  /** The slot for the step's next message from a person. */
  readonly slot: string;
  /** Tokens of the messages that the step already has, as after an interrupt. */
  readonly tokens: number;
  /** The step had no room for all waiting messages. */
  readonly isFull: boolean;
  /** The model has answered: later messages belong to the next step. */
  readonly isAnswered: boolean;
}

/** The people's messages that a repeated step already has. */
export async function stepSoFar(
  db: Queryable,
  { sessionId, epoch }: { readonly sessionId: string; readonly epoch: number },
  step: number,
): Promise<StepSoFar> {
  const rows = await db
    .select({ kind: storedMessages.kind, tokens: storedMessages.tokenCount, meta: storedMessages.meta })
    .from(storedMessages)
    .where(
      and(
        eq(storedMessages.sessionId, sessionId),
        eq(storedMessages.epoch, epoch),
        eq(storedMessages.step, step),
        inArray(storedMessages.kind, ["guidance", "answer"]),
      ),
    );
  const said = rows.filter(({ kind }) => kind === "guidance");
  return {
    slot: said.length === 0 ? "user" : `user:${said.length}`,
    tokens: said.reduce((sum, row) => sum + row.tokens, 0),
    isFull: said.some((row) => (row.meta as MessageMeta | null)?.leftSome === true),
    isAnswered: said.length < rows.length,
  };
}

/** Records which message of the transcript contains these. */
export async function keepDelivered(
  db: Queryable,
  sessionId: string,
  items: readonly Guidance[],
  sequence: number,
): Promise<void> {
  if (items.length === 0) return;
  await db
    .insert(guidance)
    .values(items.map((item) => ({ ...rowOf(sessionId, item), deliveredSequence: sequence })))
    .onConflictDoUpdate({
      target: [guidance.sessionId, guidance.id],
      // Store the text that the worker has sanitized: the sender may not know all of the worker's secrets.
      set: { deliveredSequence: sequence, parts: excluded(guidance.parts) },
    });
}

/**
 * Keeps messages that were sent after this time from being delivered again by a later reset.
 * @param after ISO time, by Temporal's clock
 */
export async function dropSaidAfter(db: Queryable, sessionId: string, after: string): Promise<void> {
  await db
    .update(guidance)
    .set({ dropped: true })
    .where(and(eq(guidance.sessionId, sessionId), gt(guidance.queuedAt, after)));
}
