/**
 * Steps that a run has finished and whose rows are gone: Postgres was restored from a backup that is older than Temporal. A notice
 * to the model, in the place of the missing rows, is also the record of what is missing.
 */
import { and, eq, sql } from "drizzle-orm";
import { estimateMessage } from "../contract/request-size.ts";
import type { Guidance } from "../contract/guidance.ts";
import type { Message } from "../contract/message.ts";
import type { Queryable } from "./db.ts";
import type { EventData } from "./event.ts";
import { appendEvents } from "./events.ts";
import { parkGuidance } from "./guidance.ts";
import { isLive } from "./live-line.ts";
import { events, sessions, storedMessages } from "./schema/index.ts";
import { insertMessage, takeSequences, type MessageMeta } from "./transcript.ts";

export type MissingRows = EventData["record:missing"];

const SLOT = "missing";

/** The last step of the live line that its newest answer, result or notice of missing steps belongs to; one row of an index. */
export const reachedStep = sql<number>`coalesce((select m.step - (m.slot = 'missing')::int from stored_messages as m
  where m.session_id = ${sessions.id} and m.superseded_epoch is null and (m.slot in ('assistant', 'missing') or m.role = 'tool')
  order by m.position desc limit 1), 0)`;

/**
 * The last step of the live line that anything is known of: its answer, or that it is missing. Of steps that a person interrupted before
 * the model said anything only bills are left. Checkpoints do not count: files are saved in the background, also after a restore.
 */
export async function knownStep(db: Queryable, sessionId: string): Promise<number> {
  const { rows } = await db.execute<{ step: number }>(sql`
    select greatest(0, ${toldStep(sessionId)},
      (select max(step) from model_calls
        where session_id = ${sessionId} and status = 'wasted' and finish = 'interrupted')) as step`);
  return rows[0]?.step ?? 0;
}

/**
 * The highest step of the live line that anything is stored under: its answer, that it is missing, or the files it left. A step that
 * was interrupted before the model said anything has no answer, and may have a checkpoint.
 */
export async function lastUsedStep(db: Queryable, sessionId: string): Promise<number> {
  const { rows } = await db.execute<{ step: number }>(sql`
    select greatest(0, ${toldStep(sessionId)},
      (select max(step) from checkpoints where session_id = ${sessionId} and superseded_epoch is null)) as step`);
  return rows[0]?.step ?? 0;
}

const toldStep = (sessionId: string) => sql`
  (select max(step - (slot = 'missing')::int) from stored_messages
    where session_id = ${sessionId} and slot in ('assistant', 'missing') and superseded_epoch is null)`;

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
 * @param said what people wrote, according to Temporal: what is not stored waits for the next step
 */
export async function recordMissing(
  tx: Queryable,
  { id, epoch }: { readonly id: string; readonly epoch: number },
  { from, to }: Pick<MissingRows, "from" | "to">,
  said: readonly Guidance[],
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
  await parkGuidance(tx, id, said);
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
