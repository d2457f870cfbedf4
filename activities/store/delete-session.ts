/** Deletes a session from the database, with its delegates, all their rows, and everything that only they refer to. */
import { and, asc, eq, inArray, notExists, notInArray, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import { removeUnusedBases } from "./bases.ts";
import { blobsOf, dropBlobs } from "./blobs.ts";
import type { Database, Queryable } from "./db.ts";
import * as schema from "./schema/index.ts";
import { lockSandbox } from "./session-locks.ts";
import { ANY, assigned, bare, excluded, insertFrom, part } from "./statements.ts";
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
  const { sessions } = schema;
  return db
    .select({ id: sessions.id, runId: sessions.runId, endedAt: sessions.endedAt })
    .from(sessions)
    .innerJoin(
      sql`(with recursive family(member, down) as (
          select ${id}::text, 0
          union all
          select ${sessions.id}, down + 1 from ${sessions} join family on ${sessions.parentId} = member
        ) select * from family) as family`,
      sql`family.member = ${sessions.id}`,
    )
    .orderBy(sql`family.down`, asc(sessions.id));
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
    const { sessions, deletedSessions: deleted } = schema;
    await tx.execute(
      insertFrom(
        deleted,
        { id: sessions.id, owner: sessions.owner, deletedBy: by ?? null },
        sql`from ${sessions} where ${inArray(sessions.id, ids)} on conflict (${bare(deleted.id)}) do update
          set ${assigned([deleted.owner, excluded(deleted.owner)], [deleted.deletedBy, excluded(deleted.deletedBy)], [deleted.deletedAt, sql`now()`])}`,
      ),
    );
    await tx
      .update(schema.batchItems)
      .set({ sessionId: null })
      .where(inArray(schema.batchItems.sessionId, ids));
    for (const table of sessionTables()) await tx.delete(table).where(inArray(table.sessionId, ids));
    await tx.delete(schema.sessions).where(inArray(schema.sessions.id, ids));
    await dropBlobs(tx, blobs);
    await removeUnusedBases(tx);
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
  const { checkpoints } = schema;
  const [base, child] = [alias(checkpoints, "base"), alias(checkpoints, "child")];
  const isOurs = inArray(base.sessionId, [...ids]);
  await tx.execute(sql`
    with recursive needed(save, below, heir) as (
      select ${base.id}, ${base.parentId}, ${child.sessionId} from ${checkpoints} ${child}
      join ${checkpoints} ${base} on ${base.id} = ${child.parentId}
      where ${isOurs} and ${notInArray(child.sessionId, [...ids])}
      union
      select ${base.id}, ${base.parentId}, heir from needed join ${checkpoints} ${base} on ${base.id} = below
      where ${isOurs}
    )
    update ${checkpoints} set ${assigned(
      [checkpoints.sessionId, sql`heirs.heir`],
      [checkpoints.epoch, 0],
      [checkpoints.supersededEpoch, 0],
      [checkpoints.supersededBy, sql`array[0]`],
      [checkpoints.step, sql`-(${checkpoints.id} % 2000000000)::int`],
    )}
    from (select save, min(heir) as heir from needed group by save) as heirs where heirs.save = ${checkpoints.id}`);
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
  const { sessions, deletedSessions: deleted } = schema;
  const hash = sql<string>`substr(encode(sha256(convert_to(${deleted.id}, 'UTF8')), 'hex'), 1, 24)`;
  const again = part.select(ANY).from(sessions).where(eq(sessions.id, deleted.id));
  const rows = await db
    .select({ hash: sql<string>`${hash}` })
    .from(deleted)
    .where(and(inArray(hash, [...hashes]), notExists(again)));
  return rows.map((row) => row.hash);
}
