/** Calls of `delegate`: the session of each, and its result. */
import { and, eq, ne, sql } from "drizzle-orm";
import type { ModelTarget } from "../config/model-target.ts";
import type { SessionStatus } from "../contract/activities.ts";
import type { Queryable } from "./db.ts";
import { checkpoints, delegations, sessions } from "./schema/index.ts";
import type { Standpoint } from "./standpoint.ts";
import type { LedgerRow } from "./tool-calls.ts";

export type Delegation = typeof delegations.$inferSelect;

const ofCall = ({ sessionId, epoch, step, index }: LedgerRow) =>
  and(
    eq(delegations.sessionId, sessionId),
    eq(delegations.epoch, epoch),
    eq(delegations.step, step),
    eq(delegations.callIndex, index),
  );

export async function findDelegation(db: Queryable, call: LedgerRow): Promise<Delegation | undefined> {
  const [row] = await db.select().from(delegations).where(ofCall(call));
  return row;
}

/** A delegate's session as its parent reads it. */
export interface Delegate {
  readonly id: string;
  readonly status: SessionStatus;
  readonly hasEnded: boolean;
  /** The model's last message. */
  readonly result: string | null;
  readonly error: { readonly type?: string; readonly message?: string } | undefined;
  readonly price: Pick<ModelTarget, "price" | "tier">;
}

/** The session of this id, if it works for that parent. */
export async function findDelegate(
  db: Queryable,
  id: string,
  parentId: string,
): Promise<Delegate | undefined> {
  const [row] = await db
    .select()
    .from(sessions)
    .where(and(eq(sessions.id, id), eq(sessions.parentId, parentId)));
  if (row === undefined) return undefined;
  return {
    id,
    status: row.status as SessionStatus,
    hasEnded: row.endedAt !== null,
    result: row.result,
    error: (row.error ?? undefined) as Delegate["error"],
    price: row.config as Delegate["price"],
  };
}

/** Records the session that performs a call; it replaces one that was recorded before. */
export async function nameDelegate(
  db: Queryable,
  call: LedgerRow,
  of: Pick<Delegation, "childId" | "access" | "baseCheckpoint">,
): Promise<void> {
  const { sessionId, epoch, step, index: callIndex } = call;
  const key = [delegations.sessionId, delegations.epoch, delegations.step, delegations.callIndex];
  await db
    .insert(delegations)
    .values({ sessionId, epoch, step, callIndex, ...of })
    .onConflictDoUpdate({ target: key, set: { ...of, status: "open" } });
}

/**
 * Whether a delegate was ended with a line that its parent has come back to since, and not by a person: it found that no call waited
 * for it, as a run does that is started before its parent's run has claimed the session; or it was cancelled, its newest run began
 * before the parent's, and either it had ended by then, or the end of its line reached it later.
 */
export async function endedWithItsLine(db: Queryable, call: LedgerRow, child: string): Promise<boolean> {
  const { rows } = await db.execute(sql`select 1
    from sessions c, sessions p join runs r on r.session_id = p.id and r.run_id = p.run_id, delegations d
    where c.id = ${child} and c.ended_at is not null
      and p.id = c.parent_id and d.session_id = p.id and d.child_id = c.id
      and d.epoch = ${call.epoch} and d.step = ${call.step} and d.call_index = ${call.index}
      and (c.error->>'type' = 'Superseded' or (c.status = 'cancelled'
        and (c.ended_at < r.started_at or cardinality(coalesce(d.superseded_by, '{}')) > 0)
        and not exists (select 1 from runs o where o.session_id = c.id and o.started_at > r.started_at)))`);
  return rows.length > 0;
}

/** How many calls of the live line were delegated. */
export async function countDelegations(db: Queryable, sessionId: string): Promise<number> {
  const [row] = await db
    .select({ count: sql<number>`count(*)::int` })
    .from(delegations)
    .where(and(eq(delegations.sessionId, sessionId), ne(delegations.status, "superseded")));
  return row?.count ?? 0;
}

export async function endDelegation(
  db: Queryable,
  call: LedgerRow,
  end: { readonly status: "applied" | "partly" | "failed"; readonly files: unknown },
): Promise<void> {
  await db.update(delegations).set(end).where(ofCall(call));
}

/** Fails calls that were closed without their delegates: the results are no longer needed, and no delegate must start. */
export async function failOpenDelegations(db: Queryable, sessionId: string): Promise<void> {
  await db.execute(sql`update sessions set status = 'cancelled', ended_at = now(), updated_at = now()
    where run_id is null and ended_at is null and id in (
      select child_id from delegations where session_id = ${sessionId} and status = 'open')`);
  await db
    .update(delegations)
    .set({ status: "failed" })
    .where(and(eq(delegations.sessionId, sessionId), eq(delegations.status, "open")));
}

/**
 * After a reset, supersedes delegates whose calls no longer exist. Delegates of the step at which the run continues are left
 * until the run reports whether it had started them: its calls become rows of the new epoch again and keep their delegates.
 * @returns how many delegates are left in this way
 */
export async function supersedeDelegations(
  tx: Queryable,
  sessionId: string,
  epoch: number,
  at: Pick<Standpoint, "step" | "phase" | "fork">,
): Promise<number> {
  let kept = 0;
  // Calls that have their results keep their delegates.
  const done =
    at.fork?.open === undefined
      ? sql`false`
      : sql`step = ${at.step} and call_index <> all(${sql.param([...at.fork.open])}::int[])`;
  if (at.phase === "tools") {
    const again = await tx.execute(sql`
      insert into delegations (session_id, epoch, step, call_index, child_id, access, base_checkpoint)
      select d.session_id, c.epoch, d.step, d.call_index, d.child_id, d.access, d.base_checkpoint
      from delegations d join tool_calls c on c.session_id = d.session_id and c.step = d.step and c.index = d.call_index
        and c.superseded_epoch is null and c.epoch = ${epoch}
      where d.session_id = ${sessionId} and d.step = ${at.step} and d.status <> 'superseded' and d.epoch < ${epoch}`);
    kept = again.rowCount ?? 0;
  }
  await tx.execute(sql`update delegations set superseded_from = status, status = 'superseded', superseded_by = array_append(superseded_by, ${epoch})
    where session_id = ${sessionId} and step >= ${at.step} and epoch < ${epoch} and status <> 'superseded' and not (${done})`);
  return kept;
}

/** Whether a session is a delegate that no call of a live line refers to any more. */
export const isOrphan = sql<boolean>`${sessions.parentId} is not null and not exists (select 1 from delegations as d
  where d.child_id = ${sessions.id} and d.status <> 'superseded')`;

/** If a delegate waits for a person, its parent counts as waiting, too. */
export const hasWaitingDelegate = sql<boolean>`exists (select 1 from sessions as d
  where d.parent_id = ${sessions.id} and d.status = 'waiting' and d.ended_at is null)`;

interface Orphan {
  readonly id: string;
  /** Whether a run has claimed it. */
  readonly hasBegun: boolean;
}

/** Delegates of a session that still run although their calls no longer exist. */
export async function orphansOf(db: Queryable, sessionId: string): Promise<Orphan[]> {
  return db
    .select({ id: sessions.id, hasBegun: sql<boolean>`${sessions.runId} is not null` })
    .from(sessions)
    .where(sql`${sessions.parentId} = ${sessionId} and ${sessions.endedAt} is null and ${isOrphan}`);
}

/**
 * Makes a session's newest files the initial files of another one. The other session gets a row of its own; the checkpoints
 * below it are shared, since rows that others build on are never written again.
 * @returns the row's id, the same in each attempt; undefined if nothing was ever saved
 */
export async function copyNewestFiles(tx: Queryable, from: string, to: string): Promise<number | undefined> {
  const [done] = await tx
    .select({ id: checkpoints.id })
    .from(checkpoints)
    .where(and(eq(checkpoints.sessionId, to), eq(checkpoints.step, 0)));
  if (done !== undefined) return done.id;
  const made = await tx.execute<{ id: string }>(sql`
    insert into checkpoints (session_id, epoch, step, parent_id, manifest, pack)
    select ${to}, 1, 0, parent_id, manifest, pack from checkpoints
    where session_id = ${from} and superseded_epoch is null order by step desc, epoch desc limit 1
    returning id`);
  return made.rows[0] === undefined ? undefined : Number(made.rows[0].id);
}
