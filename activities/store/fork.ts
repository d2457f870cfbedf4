/** Forks a session: copies its rows up to a step under a new id. The original is not changed. */
import { and, desc, eq, inArray, lt, max, sql } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";
import { estimateMessage } from "../contract/request-size.ts";
import type { Message } from "../contract/message.ts";
import type { Queryable, Store, Transaction } from "./db.ts";
import { isLive } from "./live-line.ts";
import {
  checkpoints,
  compactionEvents,
  cursors,
  egressRules,
  guidance,
  questions,
  repositories,
  sessions,
  storedMessages,
  toolCalls,
  toolOutputs,
  verifications,
  viewMarks,
} from "./schema/index.ts";
import { copyRows, insertFrom, part } from "./statements.ts";
import { filesAsOf } from "./checkpoints.ts";
import { outputHandle } from "./tool-calls.ts";
import { insertMessage, takeSequences } from "./transcript.ts";
import { applyMarks } from "./view-marks.ts";

export interface Fork {
  readonly from: string;
  readonly to: string;
  /** The first step of the live line that is not copied. */
  readonly beforeStep: number;
}

export type Forked =
  | { readonly kind: "forked" }
  /** The new id already belongs to a session. */
  | { readonly kind: "taken" }
  /** The last step to be copied has calls that still run. */
  | { readonly kind: "unfinished"; readonly step: number };

/**
 * Copies a session's live line up to the end of a step, in one transaction with one snapshot: messages, ledger, rounds,
 * whole outputs and the files. Blobs are shared; bills, events and waiting messages are not copied.
 * Rows keep their epochs and sequences, so that handles in the text lead to the same outputs.
 */
export async function copySessionLine(store: Pick<Store, "db">, fork: Fork): Promise<Forked> {
  const { from, to } = fork;
  return store.db.transaction(
    async (tx): Promise<Forked> => {
      const step = await unfinishedStep(tx, fork);
      if (step !== null) return { kind: "unfinished", step };
      const { task, config, epoch, owner } = sessions;
      const result = await tx.execute(
        insertFrom(
          sessions,
          { id: to, task, config, epoch, owner },
          sql`from ${sessions} where ${sessions.id} = ${from} on conflict do nothing`,
        ),
      );
      if (result.rowCount === 0) return { kind: "taken" };
      await copyConversation(tx, fork);
      await copyDecisions(tx, fork);
      await copyFiles(tx, fork);
      // Each session has its own branch; publications belong to the original and are not copied.
      await tx.execute(
        copyRows(
          repositories,
          { sessionId: to, branch: sql`replace(${repositories.branch}, ${from}, ${to})` },
          sql`where ${repositories.sessionId} = ${from}`,
        ),
      );
      const lastMessage = part
        .select({ last: max(storedMessages.sequence) })
        .from(storedMessages)
        .where(eq(storedMessages.sessionId, to));
      const lastCall = part
        .select({ last: max(toolCalls.sequence) })
        .from(toolCalls)
        .where(eq(toolCalls.sessionId, to));
      await tx.insert(cursors).values({
        sessionId: to,
        messageSequence: sql`greatest(coalesce(${lastMessage}, 0), coalesce(${lastCall}, 0))`,
      });
      await informModel(tx, fork);
      return { kind: "forked" };
    },
    { isolationLevel: "repeatable read" },
  );
}

/** The last step to be copied that has calls which still run; null if there is none. */
async function unfinishedStep(tx: Transaction, { from, beforeStep }: Fork): Promise<number | null> {
  const [row] = await tx
    .select({ step: max(toolCalls.step) })
    .from(toolCalls)
    .where(
      and(
        isLive(toolCalls, from),
        lt(toolCalls.step, beforeStep),
        inArray(toolCalls.status, ["pending", "running"]),
      ),
    );
  return row?.step ?? null;
}

/** The rows of the live line that belong to earlier steps. */
const earlier = (
  table: { readonly sessionId: PgColumn; readonly supersededEpoch: PgColumn; readonly step: PgColumn },
  { from, beforeStep }: Fork,
) => sql`where ${isLive(table, from)} and ${table.step} < ${beforeStep}`;

async function copyConversation(tx: Transaction, fork: Fork): Promise<void> {
  const { from, to, beforeStep } = fork;
  const live = { sessionId: to, supersededBy: sql`null` };
  // A round made at the first step that is not copied is made again when it is due.
  await tx.execute(
    copyRows(compactionEvents, live, sql`${earlier(compactionEvents, fork)} order by ${compactionEvents.id}`),
  );
  const { prunedStep } = storedMessages;
  await tx.execute(
    copyRows(
      storedMessages,
      { ...live, prunedStep: sql`case when ${prunedStep} < ${beforeStep} then ${prunedStep} end` },
      sql`${earlier(storedMessages, fork)} order by ${storedMessages.id}`,
    ),
  );
  // Later marks are copied as ones of another line: a round that was undone later is in force again.
  const isLater = sql`${viewMarks.step} >= ${beforeStep}`;
  await tx.execute(
    copyRows(
      viewMarks,
      {
        sessionId: to,
        supersededEpoch: sql`case when ${isLater} then 0 end`,
        supersededBy: sql`case when ${isLater} then array[0] end`,
      },
      sql`where ${isLive(viewMarks, from)} order by ${viewMarks.id}`,
    ),
  );
  await applyMarks(tx, to);
  await tx.execute(copyRows(toolCalls, live, earlier(toolCalls, fork)));
  const copied = part.select({ handle: outputHandle }).from(toolCalls).where(eq(toolCalls.sessionId, to));
  const told = part
    .select({ handle: verifications.handle })
    .from(verifications)
    .where(and(eq(verifications.sessionId, from), lt(verifications.step, beforeStep)));
  await tx.execute(
    copyRows(
      toolOutputs,
      { sessionId: to },
      sql`where ${toolOutputs.sessionId} = ${from}
        and (${inArray(toolOutputs.handle, copied)} or ${inArray(toolOutputs.handle, told)})`,
    ),
  );
  // So that a reset of the new session can deliver the copied messages again.
  const carrying = part
    .select({ sequence: storedMessages.sequence })
    .from(storedMessages)
    .where(eq(storedMessages.sessionId, to));
  await tx.execute(
    copyRows(
      guidance,
      { sessionId: to, dropped: false },
      sql`where ${guidance.sessionId} = ${from} and ${inArray(guidance.deliveredSequence, carrying)}
        order by ${guidance.ordinal}`,
    ),
  );
}

/** Copies what people had allowed and approved by then. */
async function copyDecisions(tx: Transaction, fork: Fork): Promise<void> {
  const { from, to, beforeStep } = fork;
  await tx.execute(
    copyRows(
      egressRules,
      { sessionId: to, supersededBy: sql`null`, at: sql`now()` },
      sql`${earlier(egressRules, fork)} order by ${egressRules.id}`,
    ),
  );
  await tx.execute(
    copyRows(
      questions,
      { sessionId: to, supersededFrom: sql`null`, supersededBy: sql`null` },
      sql`where ${questions.sessionId} = ${from} and ${questions.kind} = 'plan' and ${questions.status} = 'answered'
        and ${questions.step} < ${beforeStep}`,
    ),
  );
}

/**
 * Copies the newest checkpoint of the copied steps and the initial one, with all they build on. A delegate's checkpoints build
 * on those of its parent, which are shared.
 */
async function copyFiles(tx: Transaction, { from, to, beforeStep }: Fork): Promise<void> {
  // What others build on comes first.
  const { id, parentId, step, epoch } = checkpoints;
  const live = and(isLive(checkpoints, from), lt(step, beforeStep));
  const newest = part.select({ id }).from(checkpoints).where(live).orderBy(desc(step), desc(epoch)).limit(1);
  const initial = part
    .select({ id })
    .from(checkpoints)
    .where(and(live, eq(step, 0)))
    .orderBy(desc(epoch))
    .limit(1);
  const { rows } = await tx.execute<{ save: string; base: string | null }>(sql`
    with recursive links(save, base) as (
      select ${id}, ${parentId} from ${checkpoints} where ${id} in (${newest} union ${initial})
      union
      select ${id}, ${parentId} from ${checkpoints} join links on ${id} = base where ${checkpoints.sessionId} = ${from}
    )
    select save, base from links order by save`);
  const copies = new Map<string, string>();
  for (const { save, base } of rows) {
    const below = base === null ? null : (copies.get(base) ?? base);
    // One at a time: a client's role may give no row a number that its sequence has not just given it.
    const { baseKey, manifest, pack, packObject, objectBytes, before } = checkpoints;
    const content = { baseKey, manifest, pack, packObject, objectBytes, before };
    const result = await tx.execute<{ made: string }>(
      insertFrom(
        checkpoints,
        { ...content, sessionId: to, epoch, step, parentId: sql`${below}::bigint` },
        sql`from ${checkpoints} where ${id} = ${save} returning ${id} as made`,
      ),
    );
    copies.set(save, result.rows[0]?.made ?? save);
  }
}

const originOf = (from: string) => `[This conversation continues from an earlier point of session ${from}. `;

/** Whether a session was made by this very order. */
export async function isFork(db: Queryable, { from, to, beforeStep }: Fork): Promise<boolean> {
  const rows = await db
    .select({ id: storedMessages.id })
    .from(storedMessages)
    .where(
      and(
        eq(storedMessages.sessionId, to),
        eq(storedMessages.step, beforeStep),
        eq(storedMessages.slot, "reset"),
        eq(storedMessages.kind, "notice"),
        sql`starts_with(${storedMessages.content}->0->>'text', ${originOf(from)})`,
      ),
    );
  return rows.length > 0;
}

async function informModel(tx: Transaction, { from, to, beforeStep }: Fork): Promise<void> {
  const filesAre = await filesAsOf(tx, from, beforeStep);
  const text = `${originOf(from)}The files in /workspace are ${filesAre}; processes that were started are not there.]`;
  const message: Message = { role: "user", content: [{ type: "text", text }] };
  const [row] = await tx.select({ epoch: sessions.epoch }).from(sessions).where(eq(sessions.id, to));
  await insertMessage(tx, to, await takeSequences(tx, to, 1), {
    epoch: row?.epoch ?? 1,
    step: beforeStep,
    slot: "reset",
    kind: "notice",
    message,
    tokens: estimateMessage(message),
  });
}
