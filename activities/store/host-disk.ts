/** What is kept on Docker hosts, and for how long it was not used: stopped sandboxes, bases, and what both take. */
import { and, asc, eq, gt, inArray, isNotNull, sql } from "drizzle-orm";
import type { Queryable } from "./db.ts";
import { bases, checkpoints, sandboxes, sandboxHosts, warmBases } from "./schema/index.ts";

export interface ParkedSandbox {
  readonly id: string;
  /** 0 if it could not be counted. */
  readonly bytes: number;
  readonly idleMs: number;
  /** Whether it has files that no save has. */
  readonly isOnlyCopy: boolean;
}

const idleSince = (time: unknown) =>
  sql<number>`(extract(epoch from now() - ${time}) * 1000)::float8`.mapWith(Number);

/** Which of these sessions' sandboxes are stopped and kept. */
export async function parkedAmong(db: Queryable, ids: readonly string[]): Promise<ParkedSandbox[]> {
  const { sessionId: id, parkedAt, parkedUntil, parkedBytes, leftOut } = sandboxes;
  const rows = await db
    .select({
      id,
      bytes: parkedBytes,
      idleMs: idleSince(parkedAt),
      isOnlyCopy: sql<boolean>`json_array_length(${leftOut}) > 0`,
    })
    .from(sandboxes)
    .where(and(inArray(id, [...ids]), isNotNull(parkedUntil)));
  return rows.map((row) => ({ ...row, bytes: row.bytes ?? 0 }));
}

export interface BaseUse {
  readonly key: string;
  readonly commit: string;
  /** Since it was made, a session's files on it were saved, or this host's `warm` looked at it. */
  readonly idleMs: number;
  /** A session whose saves list what differs from it, if the store does not have the base's own files: then the remote must. */
  readonly neededBy: string | null;
}

/** The use of those of these bases that sessions may still need: the others have no row any more. */
export async function basesUsed(db: Queryable, host: string, keys: readonly string[]): Promise<BaseUse[]> {
  const saved = sql`(select max(${checkpoints.createdAt}) from ${checkpoints} where ${checkpoints.baseKey} = ${bases.key})`;
  const looked = sql`(select max(${warmBases.checkedAt}) from ${warmBases}
    where ${warmBases.baseKey} = ${bases.key} and ${warmBases.host} = ${host})`;
  const standing = sql<string | null>`(select ${checkpoints.sessionId} from ${checkpoints}
    where not ${bases.isWhole} and ${checkpoints.baseKey} = ${bases.key} limit 1)`;
  return db
    .select({
      key: bases.key,
      commit: bases.commit,
      idleMs: idleSince(sql`greatest(${bases.createdAt}, ${saved}, ${looked})`),
      neededBy: standing,
    })
    .from(bases)
    .where(inArray(bases.key, [...keys]));
}

export interface HostDiskUse {
  readonly host: string;
  readonly usedBytes: number;
  readonly limitBytes: number;
  readonly bases: number;
  readonly parked: number;
  /** Stopped sandboxes that stay although there is no room for them: they have files that no save has. */
  readonly unsaved: number;
}

export async function noteHostDisk(db: Queryable, use: HostDiskUse): Promise<void> {
  const { host, usedBytes: diskUsed, limitBytes: diskLimit, bases: made, parked, unsaved } = use;
  await db
    .update(sandboxHosts)
    .set({ diskUsed, diskLimit, bases: made, parked, unsaved })
    .where(eq(sandboxHosts.name, host));
}

/** What hosts whose workers told in the last half hour have, by their names. */
export async function readHostDisks(db: Queryable): Promise<HostDiskUse[]> {
  const { name: host, diskUsed, diskLimit, seenAt, bases: made, parked, unsaved } = sandboxHosts;
  const rows = await db
    .select({ host, usedBytes: diskUsed, limitBytes: diskLimit, bases: made, parked, unsaved })
    .from(sandboxHosts)
    .where(gt(seenAt, sql`now() - interval '30 minutes'`))
    .orderBy(asc(host));
  return rows.flatMap(({ usedBytes, limitBytes, ...row }) =>
    usedBytes === null || limitBytes === null
      ? []
      : [
          {
            usedBytes,
            limitBytes,
            host: row.host,
            bases: row.bases ?? 0,
            parked: row.parked ?? 0,
            unsaved: row.unsaved ?? 0,
          },
        ],
  );
}
