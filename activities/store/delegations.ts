/** Calls of `delegate`: the session of each, and its result. */
import {
  and,
  eq,
  exists,
  gt,
  gte,
  inArray,
  isNotNull,
  isNull,
  lt,
  ne,
  notExists,
  or,
  sql,
} from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { ModelTarget } from "../config/model-target.ts";
import type { SessionStatus } from "../contract/activities.ts";
import type { Queryable } from "./db.ts";
import { isIn, isLive, supersededAlso } from "./live-line.ts";
import { checkpoints, delegations, runs, sessions, toolCalls } from "./schema/index.ts";
import type { Standpoint } from "./lines.ts";
import { ANY, insertFrom, part } from "./statements.ts";
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
export async function endedWithItsLine(db: Queryable, call: LedgerRow, childId: string): Promise<boolean> {
  const [parent, later] = [alias(sessions, "parent"), alias(runs, "later")];
  const newer = part
    .select(ANY)
    .from(later)
    .where(and(eq(later.sessionId, sessions.id), gt(later.startedAt, runs.startedAt)));
  const isLeft = sql`cardinality(coalesce(${delegations.supersededBy}, '{}')) > 0`;
  const rows = await db
    .select({ id: sessions.id })
    .from(sessions)
    .innerJoin(parent, eq(parent.id, sessions.parentId))
    .innerJoin(runs, and(eq(runs.sessionId, parent.id), eq(runs.runId, parent.runId)))
    .innerJoin(delegations, and(ofCall(call), eq(delegations.childId, sessions.id)))
    .where(
      and(
        eq(sessions.id, childId),
        isNotNull(sessions.endedAt),
        eq(delegations.sessionId, parent.id),
        or(
          eq(sql`${sessions.error}->>'type'`, "Superseded"),
          and(
            eq(sessions.status, "cancelled"),
            or(lt(sessions.endedAt, runs.startedAt), isLeft),
            notExists(newer),
          ),
        ),
      ),
    );
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
  const isOpen = and(eq(delegations.sessionId, sessionId), eq(delegations.status, "open"));
  await db
    .update(sessions)
    .set({ status: "cancelled", endedAt: sql`now()`, updatedAt: sql`now()` })
    .where(
      and(
        isNull(sessions.runId),
        isNull(sessions.endedAt),
        inArray(sessions.id, part.select({ id: delegations.childId }).from(delegations).where(isOpen)),
      ),
    );
  await db.update(delegations).set({ status: "failed" }).where(isOpen);
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
  let keptRows = 0;
  // Calls that have their results keep their delegates.
  const hasResult =
    at.fork?.open === undefined
      ? sql`false`
      : sql`${delegations.step} = ${at.step} and not ${isIn(delegations.callIndex, at.fork.open)}`;
  if (at.phase === "tools") {
    const again = await tx.execute(
      insertFrom(
        delegations,
        {
          sessionId: delegations.sessionId,
          epoch: toolCalls.epoch,
          step: delegations.step,
          callIndex: delegations.callIndex,
          childId: delegations.childId,
          access: delegations.access,
          baseCheckpoint: delegations.baseCheckpoint,
        },
        sql`from ${delegations} join ${toolCalls} on ${toolCalls.sessionId} = ${delegations.sessionId}
          and ${toolCalls.step} = ${delegations.step} and ${toolCalls.index} = ${delegations.callIndex}
          and ${toolCalls.supersededEpoch} is null and ${toolCalls.epoch} = ${epoch}
        where ${delegations.sessionId} = ${sessionId} and ${delegations.step} = ${at.step}
          and ${delegations.status} <> 'superseded' and ${delegations.epoch} < ${epoch}`,
      ),
    );
    keptRows = again.rowCount ?? 0;
  }
  await tx
    .update(delegations)
    .set({
      supersededFrom: sql`${delegations.status}`,
      status: "superseded",
      supersededBy: supersededAlso(delegations, epoch),
    })
    .where(
      and(
        eq(delegations.sessionId, sessionId),
        gte(delegations.step, at.step),
        lt(delegations.epoch, epoch),
        ne(delegations.status, "superseded"),
        sql`not (${hasResult})`,
      ),
    );
  return keptRows;
}

/** Whether a session is a delegate that no call of a live line refers to any more. */
export const isOrphan = sql<boolean>`${and(
  isNotNull(sessions.parentId),
  notExists(
    part
      .select(ANY)
      .from(delegations)
      .where(and(eq(delegations.childId, sessions.id), ne(delegations.status, "superseded"))),
  ),
)}`;

const child = alias(sessions, "child");

/** If a delegate waits for a person, its parent counts as waiting, too. */
export const hasWaitingDelegate = sql<boolean>`${exists(
  part
    .select(ANY)
    .from(child)
    .where(and(eq(child.parentId, sessions.id), eq(child.status, "waiting"), isNull(child.endedAt))),
)}`;

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
  const [existing] = await tx
    .select({ id: checkpoints.id })
    .from(checkpoints)
    .where(and(eq(checkpoints.sessionId, to), eq(checkpoints.step, 0)));
  if (existing !== undefined) return existing.id;
  const { parentId, baseKey, manifest, pack, before } = checkpoints;
  const result = await tx.execute<{ made: string }>(
    insertFrom(
      checkpoints,
      { sessionId: to, epoch: 1, step: 0, parentId, baseKey, manifest, pack, before },
      sql`from ${checkpoints} where ${isLive(checkpoints, from)}
        order by ${checkpoints.step} desc, ${checkpoints.epoch} desc limit 1 returning ${checkpoints.id} as made`,
    ),
  );
  return result.rows[0] === undefined ? undefined : Number(result.rows[0].made);
}
