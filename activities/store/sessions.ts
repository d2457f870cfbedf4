/** Sessions and the runs that may write to them. */
import { and, desc, eq, isNull, max, sql } from "drizzle-orm";
import type { RunConfig } from "../agent-config.ts";
import { runConfigSchema } from "../agent-config.ts";
import type { UserPart } from "../context/message.ts";
import { estimateMessage } from "../context/tokens.ts";
import type { SessionStatus } from "../contract.ts";
import type { Queryable, Store } from "./db.ts";
import { checkpoints, cursors, messages, runs, sessions } from "./schema.ts";

export interface NewSession {
  readonly id: string;
  readonly task: string;
  /** Images and files that belong to the task. */
  readonly parts?: readonly UserPart[];
  readonly config: RunConfig;
  readonly instructions?: string;
  /** Files to start with, as a checkpoint of step 0. */
  readonly workspace?: { readonly manifest: Uint8Array; readonly pack: Uint8Array };
}

export interface Session {
  readonly id: string;
  readonly status: SessionStatus;
  readonly task: string;
  readonly config: RunConfig;
  readonly instructions: string | undefined;
  readonly epoch: number;
  readonly runId: string | undefined;
  /** The box it last had; none once it ended. */
  readonly container: string | undefined;
  readonly restoreWorkspace: boolean;
  readonly createdAt: Date;
}

/** Stores a session with its task as the first message. @returns false where the id is taken already */
export async function createSession(store: Pick<Store, "db">, session: NewSession): Promise<boolean> {
  const content: UserPart[] = [{ type: "text", text: session.task }, ...(session.parts ?? [])];
  return store.db.transaction(async (tx) => {
    const made = await tx
      .insert(sessions)
      .values({
        id: session.id,
        task: session.task,
        config: session.config,
        instructions: session.instructions ?? null,
      })
      .onConflictDoNothing()
      .returning({ id: sessions.id });
    if (made.length === 0) return false;
    await tx.insert(cursors).values({ sessionId: session.id, messageSequence: 1 });
    await tx.insert(messages).values({
      sessionId: session.id,
      sequence: 1,
      position: 1,
      epoch: 1,
      step: 0,
      slot: "user",
      role: "user",
      kind: "task",
      content,
      tokenCount: estimateMessage({ role: "user", content }),
    });
    if (session.workspace) {
      await tx.insert(checkpoints).values({ sessionId: session.id, epoch: 1, step: 0, ...session.workspace });
    }
    return true;
  });
}

export async function findSession(db: Queryable, id: string): Promise<Session | undefined> {
  const [row] = await db.select().from(sessions).where(eq(sessions.id, id));
  if (!row) return undefined;
  return {
    id: row.id,
    status: row.status as SessionStatus,
    task: row.task,
    config: runConfigSchema.parse(row.config),
    instructions: row.instructions ?? undefined,
    epoch: row.epoch,
    runId: row.runId ?? undefined,
    container: row.container ?? undefined,
    restoreWorkspace: row.restoreWorkspace,
    createdAt: row.createdAt,
  };
}

/** The last finished step of the live line: the highest with an answer. */
export async function lastStep(db: Queryable, sessionId: string): Promise<number> {
  const [row] = await db
    .select({ step: max(messages.step) })
    .from(messages)
    .where(
      and(
        eq(messages.sessionId, sessionId),
        eq(messages.slot, "assistant"),
        isNull(messages.supersededEpoch),
      ),
    );
  return row?.step ?? 0;
}

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

/** Writes how a session ended, once: a second writer finds it ended. */
export async function endSession(
  db: Queryable,
  id: string,
  runId: string,
  end: { readonly status: SessionStatus; readonly result: string; readonly error: unknown },
): Promise<boolean> {
  const done = await db
    .update(sessions)
    .set({
      status: end.status,
      result: end.result,
      error: end.error ?? null,
      endedAt: sql`now()`,
      updatedAt: sql`now()`,
      container: null,
    })
    .where(and(eq(sessions.id, id), eq(sessions.runId, runId), isNull(sessions.endedAt)))
    .returning({ id: sessions.id });
  return done.length > 0;
}

export async function setContainer(
  db: Queryable,
  id: string,
  container: string,
  host: string,
): Promise<void> {
  await db.update(sessions).set({ container, host, restoreWorkspace: false }).where(eq(sessions.id, id));
}

/** Newest first. */
export async function listSessions(
  db: Queryable,
  limit: number,
): Promise<readonly { id: string; status: string; task: string; createdAt: Date; endedAt: Date | null }[]> {
  return db
    .select({
      id: sessions.id,
      status: sessions.status,
      task: sessions.task,
      createdAt: sessions.createdAt,
      endedAt: sessions.endedAt,
    })
    .from(sessions)
    .orderBy(desc(sessions.createdAt))
    .limit(limit);
}

/** Runs while no other does with this session, over all workers: a lock that ends with the transaction. */
export async function lockedSession<T>(
  store: Pick<Store, "db">,
  sessionId: string,
  body: (tx: Queryable) => Promise<T>,
): Promise<T> {
  return store.db.transaction(async (tx) => {
    await tx.execute(sql`select pg_advisory_xact_lock(hashtext('session'), hashtext(${sessionId}))`);
    return body(tx);
  });
}

/** Ends a session whose run ended without a word of ours (terminated, or timed out). Idempotent. */
export async function endAbandoned(
  db: Queryable,
  id: string,
  end: { readonly status: "cancelled" | "failed"; readonly message: string },
): Promise<boolean> {
  const done = await db
    .update(sessions)
    .set({
      status: end.status,
      error: { type: "RunEnded", message: end.message },
      endedAt: sql`now()`,
      updatedAt: sql`now()`,
      container: null,
    })
    .where(and(eq(sessions.id, id), isNull(sessions.endedAt)))
    .returning({ id: sessions.id });
  return done.length > 0;
}
