/** Which run may write to a session, and what a reset leaves behind. */
import { and, eq, max, sql } from "drizzle-orm";
import type { Queryable, Store } from "./db.ts";
import { runs, sessions } from "./schema.ts";

/** Where a run stands when it first writes: what comes from here on in the rows belongs to another line. */
export interface Standpoint {
  readonly step: number;
  /** `model`: this step's messages are still to come; `tools`: its answer is there, its results are not. */
  readonly phase: "model" | "tools";
}

export interface Takeover {
  readonly sessionId: string;
  readonly runId: string;
  /** First run of the chain, where the caller knows it. */
  readonly chain?: string;
}

/**
 * Makes a run the one that may write (invariant 7). A run that was never seen takes the session over: rows from its
 * standpoint on are marked as superseded, never deleted, and a new epoch begins if there were any. Rounds and prunes
 * from there on are taken back, and the workspace is to be restored.
 * @returns the epoch in force, or `superseded` where a newer run has taken over from this one
 */
export async function takeOver(
  store: Pick<Store, "db">,
  run: Takeover,
  at: Standpoint,
): Promise<{ epoch: number } | "superseded"> {
  return store.db.transaction(async (tx) => {
    const [session] = await tx
      .select({ epoch: sessions.epoch, runId: sessions.runId })
      .from(sessions)
      .where(eq(sessions.id, run.sessionId))
      .for("update");
    if (!session || session.runId === run.runId) return { epoch: session?.epoch ?? 1 };
    const known = await tx
      .select({ runId: runs.runId })
      .from(runs)
      .where(and(eq(runs.sessionId, run.sessionId), eq(runs.runId, run.runId)));
    if (known.length > 0) return "superseded";
    const next = session.epoch + 1;
    const dropped = await supersede(tx, run.sessionId, next, at);
    const epoch = dropped ? next : session.epoch;
    const [last] = await tx
      .select({ ordinal: max(runs.ordinal) })
      .from(runs)
      .where(eq(runs.sessionId, run.sessionId));
    await tx.insert(runs).values({
      sessionId: run.sessionId,
      runId: run.runId,
      ordinal: (last?.ordinal ?? 0) + 1,
      epoch,
      chain: run.chain ?? run.runId,
      startStep: at.step - 1,
    });
    await tx
      .update(sessions)
      .set({
        runId: run.runId,
        epoch,
        status: "active",
        endedAt: null,
        updatedAt: sql`now()`,
        ...(dropped ? { restoreWorkspace: true } : {}),
      })
      .where(eq(sessions.id, run.sessionId));
    return { epoch };
  });
}

/** The steps that were finished when a chain of runs began, if one of its runs was seen before (a reset to its start). */
export async function chainStart(
  db: Queryable,
  sessionId: string,
  chain: string,
): Promise<number | undefined> {
  const [row] = await db
    .select({ step: runs.startStep })
    .from(runs)
    .where(and(eq(runs.sessionId, sessionId), eq(runs.chain, chain)))
    .orderBy(runs.ordinal)
    .limit(1);
  return row?.step;
}

async function supersede(tx: Queryable, id: string, epoch: number, at: Standpoint): Promise<boolean> {
  const later =
    at.phase === "model"
      ? sql`step >= ${at.step}`
      : sql`(step > ${at.step} or (step = ${at.step} and slot like 'tool:%'))`;
  const gone = await tx.execute(sql`update messages set superseded_epoch = ${epoch}
    where session_id = ${id} and superseded_epoch is null and slot not like 'summary:%' and ${later}`);
  // Parked messages that the abandoned line had delivered wait again.
  await tx.execute(sql`update guidance set delivered_sequence = null where session_id = ${id}
    and delivered_sequence in (select sequence from messages where session_id = ${id} and superseded_epoch = ${epoch})`);
  const rounds = await tx.execute(sql`update compaction_events set superseded_epoch = ${epoch}
    where session_id = ${id} and superseded_epoch is null and step > ${at.step} returning round`);
  for (const { round } of rounds.rows as { round: number }[]) {
    await tx.execute(sql`update messages set is_compacted = false, compacted_round = null, compacted_at = null
      where session_id = ${id} and compacted_round = ${round}`);
    await tx.execute(sql`update messages set superseded_epoch = ${epoch}
      where session_id = ${id} and superseded_epoch is null and slot = ${`summary:${round}`}`);
  }
  await tx.execute(
    sql`update messages set pruned_step = null where session_id = ${id} and pruned_step > ${at.step}`,
  );
  await tx.execute(sql`update checkpoints set superseded_epoch = ${epoch}
    where session_id = ${id} and superseded_epoch is null and step >= ${at.step}`);
  await supersedeCalls(tx, id, epoch, at);
  return (gone.rowCount ?? 0) > 0;
}

/** Calls of the standpoint's own step are made again as new ones, since their answers are superseded. */
async function supersedeCalls(tx: Queryable, id: string, epoch: number, at: Standpoint): Promise<void> {
  if (at.phase === "tools") {
    await tx.execute(sql`with again as (
        select step, index, call_id, name, row_number() over (order by index) as place, count(*) over () as total from tool_calls
        where session_id = ${id} and superseded_epoch is null and step = ${at.step} and status <> 'pending'
      ), c as (
        update cursors set message_sequence = message_sequence + (select count(*) from again) where session_id = ${id} returning message_sequence
      )
      insert into tool_calls (session_id, epoch, step, index, call_id, name, sequence)
      select ${id}, ${epoch}, step, index, call_id, name, c.message_sequence - total + place from again, c`);
  }
  await tx.execute(sql`update tool_calls set superseded_epoch = ${epoch}
    where session_id = ${id} and superseded_epoch is null and epoch < ${epoch}
    and (step > ${at.step} or (step = ${at.step} and (${at.phase === "model"} or status <> 'pending')))`);
}
