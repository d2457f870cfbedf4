/** Deletes a session from the database, with its delegates, all their rows, and everything that only they refer to. */
import { eq, inArray, sql } from "drizzle-orm";
import { blobsOf, dropBlobs } from "./blobs.ts";
import type { Database, Queryable } from "./db.ts";
import * as schema from "./schema/index.ts";
import { lockSandbox } from "./session-locks.ts";
import { sessionTables } from "./session-tables.ts";

/** A session with the run that had it when it was read. */
export interface FamilyMember {
  readonly id: string;
  readonly runId: string | null;
  readonly endedAt: Date | null;
}

type Deletion =
  | {
      readonly kind: "deleted";
      /** Ids of the session and its delegates. */
      readonly ids: readonly string[];
      /** Their runs in Temporal, as far as rows record them. */
      readonly runs: readonly { readonly id: string; readonly runId: string }[];
    }
  /** A run claimed one of the sessions, or there is a new delegate. */
  | { readonly kind: "changed" };

/** A session and all that it delegated to, itself first. */
export async function readFamily(db: Queryable, id: string): Promise<FamilyMember[]> {
  const { rows } = await db.execute<{ id: string; run_id: string | null; ended_at: string | null }>(sql`
    with recursive family as (
      select id, run_id, ended_at, 0 as down from sessions where id = ${id}
      union all
      select s.id, s.run_id, s.ended_at, down + 1 from sessions s join family on s.parent_id = family.id
    )
    select id, run_id, to_json(ended_at) #>> '{}' as ended_at from family order by down, id`);
  return rows.map(({ id: member, run_id: runId, ended_at: endedAt }) => ({
    id: member,
    runId,
    endedAt: endedAt === null ? null : new Date(endedAt),
  }));
}

/**
 * Keeps runs from claiming the sessions, and rows of theirs from being stored, until the transaction ends.
 * @returns false if the family has changed since it was read
 */
export async function lockFamily(tx: Queryable, family: readonly FamilyMember[]): Promise<boolean> {
  const [root] = family;
  if (root === undefined) return false;
  // Opening and saving sandboxes takes the same lock, so no run can claim a session meanwhile.
  for (const { id } of family) await lockSandbox(tx, id);
  await tx
    .select({ id: schema.sessions.id })
    .from(schema.sessions)
    .where(
      inArray(
        schema.sessions.id,
        family.map(({ id }) => id),
      ),
    )
    .for("update");
  return keyOf(await readFamily(tx, root.id)) === keyOf(family);
}

/**
 * Deletes every row of a family, in one transaction, and keeps one line about each session. Checkpoints that a fork builds on
 * are handed over to the fork. A batch keeps its items, without their sessions.
 * @param family the sessions found not to run: nothing is deleted if the family has changed
 */
export async function deleteFamily(
  db: Database,
  family: readonly FamilyMember[],
  by: string | undefined,
): Promise<Deletion> {
  return db.transaction(async (tx): Promise<Deletion> => {
    if (!(await lockFamily(tx, family))) return { kind: "changed" };
    const ids = family.map(({ id }) => id);
    const runs = await tx
      .select({ id: schema.runs.sessionId, runId: schema.runs.runId })
      .from(schema.runs)
      .where(inArray(schema.runs.sessionId, ids));
    await leaveToForks(tx, ids);
    const blobs = await blobsOf(tx, ids);
    await tx.execute(sql`
      insert into deleted_sessions (id, owner, deleted_by) select id, owner, ${by ?? null} from sessions
      where id in ${ids} on conflict (id) do update
      set owner = excluded.owner, deleted_by = excluded.deleted_by, deleted_at = now()`);
    await tx
      .update(schema.batchItems)
      .set({ sessionId: null })
      .where(inArray(schema.batchItems.sessionId, ids));
    for (const table of sessionTables()) await tx.delete(table).where(inArray(table.sessionId, ids));
    await tx.delete(schema.sessions).where(inArray(schema.sessions.id, ids));
    await dropBlobs(tx, blobs);
    return { kind: "deleted", ids, runs };
  });
}

const keyOf = (family: readonly FamilyMember[]) =>
  JSON.stringify(family.map(({ id, runId, endedAt }) => [id, runId, endedAt === null]));

/**
 * Hands over checkpoints that other sessions build on: a fork of a delegate shares the files that the delegate was given. They
 * get step numbers that no step has, and are marked, so that they are only read as the base of other checkpoints.
 */
async function leaveToForks(tx: Queryable, ids: readonly string[]): Promise<void> {
  await tx.execute(sql`
    with recursive needed as (
      select base.id, base.parent_id, child.session_id as heir from checkpoints child
      join checkpoints base on base.id = child.parent_id
      where base.session_id in ${ids} and child.session_id not in ${ids}
      union
      select base.id, base.parent_id, needed.heir from needed join checkpoints base on base.id = needed.parent_id
      where base.session_id in ${ids}
    )
    update checkpoints c set session_id = heirs.heir, epoch = 0, superseded_epoch = 0,
      step = -(c.id % 2000000000)::int
    from (select id, min(heir) as heir from needed group by id) as heirs where heirs.id = c.id`);
}

interface DeletedSession {
  readonly id: string;
  readonly deletedAt: Date;
  readonly deletedBy: string | null;
}

/** The line that is kept of a deleted session. */
export async function findDeleted(db: Queryable, id: string): Promise<DeletedSession | undefined> {
  const [row] = await db
    .select({
      id: schema.deletedSessions.id,
      deletedAt: schema.deletedSessions.deletedAt,
      deletedBy: schema.deletedSessions.deletedBy,
    })
    .from(schema.deletedSessions)
    .where(eq(schema.deletedSessions.id, id));
  return row;
}

/** The hashes among these (first 24 hex digits of an id's SHA-256) of deleted sessions whose id is not in use again. */
export async function deletedHashes(db: Queryable, hashes: readonly string[]): Promise<string[]> {
  if (hashes.length === 0) return [];
  const { rows } = await db.execute<{ hash: string }>(sql`
    select hash from (
      select id, substr(encode(sha256(convert_to(id, 'UTF8')), 'hex'), 1, 24) as hash from deleted_sessions) as gone
    where hash in ${[...hashes]} and not exists (select 1 from sessions where sessions.id = gone.id)`);
  return rows.map(({ hash }) => hash);
}
