/**
 * Steps that a run has finished and whose rows are gone: Postgres was restored from a backup that is older than Temporal. A notice
 * to the model, in the place of the missing rows, is also the record of what is missing.
 */
import { and, desc, eq, max, sql, type SQLWrapper } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import { estimateMessage } from "../contract/request-size.ts";
import type { Guidance } from "../contract/guidance.ts";
import type { Message } from "../contract/message.ts";
import type { Queryable } from "./db.ts";
import type { EventData } from "./event.ts";
import { appendEvents } from "./events.ts";
import { recoverGuidance } from "./guidance.ts";
import { isLive } from "./live-line.ts";
import { checkpoints, events, modelCalls, sessions, storedMessages } from "./schema/index.ts";
import { part } from "./statements.ts";
import { insertMessage, takeSequences, type MessageMeta } from "./transcript.ts";

export type MissingRows = EventData["record:missing"];

const SLOT = "missing";

const reached = alias(storedMessages, "reached");

/** The last step of the live line that its newest answer, result or notice of missing steps belongs to; one row of an index. */
export const reachedStep = sql<number>`coalesce(${part
  .select({ step: sql`${reached.step} - (${reached.slot} = 'missing')::int` })
  .from(reached)
  .where(
    and(
      isLive(reached, sql`${sessions.id}`),
      sql`(${reached.slot} in ('assistant', 'missing') or ${reached.role} = 'tool')`,
    ),
  )
  .orderBy(desc(reached.position))
  .limit(1)}, 0)`;

/**
 * The last step of the live line that anything is known of: its answer, or that it is missing. Of steps that a person interrupted before
 * the model said anything only bills are left. Checkpoints do not count: files are saved in the background, also after a restore.
 */
export async function knownStep(db: Queryable, sessionId: string): Promise<number> {
  const isInterrupted = and(
    eq(modelCalls.sessionId, sessionId),
    eq(modelCalls.status, "wasted"),
    eq(modelCalls.finish, "interrupted"),
  );
  return highestOf(
    db,
    toldStep(sessionId),
    part
      .select({ highest: max(modelCalls.step) })
      .from(modelCalls)
      .where(isInterrupted),
  );
}

/**
 * The highest step of the live line that anything is stored under: its answer, that it is missing, or the files it left. A step that
 * was interrupted before the model said anything has no answer, and may have a checkpoint.
 */
export async function lastUsedStep(db: Queryable, sessionId: string): Promise<number> {
  return highestOf(
    db,
    toldStep(sessionId),
    part
      .select({ highest: max(checkpoints.step) })
      .from(checkpoints)
      .where(isLive(checkpoints, sessionId)),
  );
}

const toldStep = (sessionId: string) =>
  part
    .select({
      highest: sql<number | null>`max(${storedMessages.step} - (${storedMessages.slot} = 'missing')::int)`,
    })
    .from(storedMessages)
    .where(and(isLive(storedMessages, sessionId), sql`${storedMessages.slot} in ('assistant', 'missing')`));

/** By one statement, and so one snapshot. */
async function highestOf(db: Queryable, one: SQLWrapper, other: SQLWrapper): Promise<number> {
  const { rows } = await db.execute<{ highest: number }>(
    sql`select greatest(0, ${one}, ${other}) as highest`,
  );
  return rows[0]?.highest ?? 0;
}

/** Whether the rows of this step are among those that are missing. */
export async function isStepMissing(db: Queryable, sessionId: string, step: number): Promise<boolean> {
  const rows = await db
    .select({ meta: storedMessages.meta })
    .from(storedMessages)
    .where(and(isLive(storedMessages, sessionId), eq(storedMessages.slot, SLOT)));
  return rows.some(({ meta }) => {
    const { missing } = (meta ?? {}) as MessageMeta;
    return missing !== undefined && missing.from <= step && step <= missing.to;
  });
}

/**
 * Records that the rows of these steps are missing: for the model, and for people. Idempotent. The caller holds the session's lock.
 * @param items what people wrote, according to Temporal: what is not stored waits for the next step
 */
export async function recordMissing(
  tx: Queryable,
  { id, epoch }: { readonly id: string; readonly epoch: number },
  { from, to }: Pick<MissingRows, "from" | "to">,
  items: readonly Guidance[],
): Promise<void> {
  const message: Message = { role: "user", content: [{ type: "text", text: noticeOf(from, to) }] };
  const step = to + 1;
  const isNew = await insertMessage(tx, id, await takeSequences(tx, id, 1), {
    epoch,
    step,
    slot: SLOT,
    kind: "notice",
    message,
    tokens: estimateMessage(message),
    meta: { missing: { from, to } },
  });
  if (!isNew) return;
  await recoverGuidance(tx, { sessionId: id, epoch, step: to }, items);
  await appendEvents(tx, id, epoch, [{ type: "record:missing", step: to, data: { from, to } }]);
}

const noticeOf = (from: number, to: number) =>
  `[The record of this session was restored from an older copy: ${stepsText(from, to)} missing from it. What they did may be in the files and elsewhere. Look at the files before you repeat any of it. Messages that the user sent meanwhile follow, if there were any.]`;

const stepsText = (from: number, to: number) =>
  from === to ? `step ${from} is` : `steps ${from} to ${to} are`;

/** What is missing of a session, oldest first. */
export async function missingRows(db: Queryable, sessionId: string): Promise<MissingRows[]> {
  const rows = await db
    .select({ data: events.data })
    .from(events)
    .where(and(eq(events.sessionId, sessionId), eq(events.type, "record:missing")))
    .orderBy(events.seq);
  return rows.map(({ data }) => data as MissingRows);
}
