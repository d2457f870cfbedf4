/** Rows of bases that the operator has made for everyone. */
import { and, asc, eq, gt, max, sql } from "drizzle-orm";
import type { RunConfig } from "../config/agent-config.ts";
import type { WarmHost } from "../contract/warm.ts";
import type { Queryable } from "./db.ts";
import { checkpoints, sandboxHosts, warmBases, warms } from "./schema/index.ts";

export interface Warm {
  readonly id: string;
  readonly url: string;
  readonly config: RunConfig;
}

/** Adds a repository, or gives it other settings. */
export async function saveWarm(db: Queryable, { id, ...warm }: Warm): Promise<void> {
  await db
    .insert(warms)
    .values({ id, ...warm })
    .onConflictDoUpdate({ target: warms.id, set: warm });
}

export async function findWarm(db: Queryable, id: string): Promise<Warm | undefined> {
  const [row] = await db.select().from(warms).where(eq(warms.id, id));
  // Written by this program.
  return row as Warm | undefined;
}

/** Idempotent. Its bases go when no session stands on them. */
export async function removeWarm(db: Queryable, id: string): Promise<void> {
  await db.delete(warmBases).where(eq(warmBases.warmId, id));
  await db.delete(warms).where(eq(warms.id, id));
}

/** What one host has of a repository. */
export interface HostWarmth {
  readonly warmId: string;
  readonly host: string;
  readonly commit: string | null;
  readonly files: number | null;
  readonly bytes: number | null;
  readonly madeAt: Date | null;
  readonly checkedAt: Date;
  readonly failure: string | null;
  /** When a session last began on it; null if none has. */
  readonly usedAt: Date | null;
}

export async function listWarms(db: Queryable): Promise<readonly Pick<Warm, "id" | "url">[]> {
  return db.select({ id: warms.id, url: warms.url }).from(warms).orderBy(asc(warms.url));
}

export async function listHostWarmths(db: Queryable): Promise<HostWarmth[]> {
  const { warmId, host, commit, files, bytes, madeAt, checkedAt, failure, baseKey } = warmBases;
  return db
    .select({
      warmId,
      host,
      commit,
      files,
      bytes,
      madeAt,
      checkedAt,
      failure,
      usedAt: max(checkpoints.createdAt),
    })
    .from(warmBases)
    .leftJoin(checkpoints, and(eq(checkpoints.baseKey, baseKey), eq(checkpoints.step, 0)))
    .groupBy(warmId, host)
    .orderBy(asc(warmId), asc(host));
}

/** How a look at the repository on a host ended. What is not named stays: with a failure, the base of before. */
export async function noteWarmth(
  db: Queryable,
  at: { readonly warmId: string; readonly host: string },
  now: Partial<Pick<typeof warmBases.$inferInsert, "baseKey" | "commit" | "files" | "bytes">> & {
    readonly isMade?: boolean;
    readonly failure?: string;
  },
): Promise<void> {
  const { isMade = false, failure, ...base } = now;
  const seen = { ...base, checkedAt: sql`now()`, failure: failure ?? null };
  const set = isMade ? { ...seen, madeAt: sql`now()` } : seen;
  await db
    .insert(warmBases)
    .values({ ...at, ...set })
    .onConflictDoUpdate({ target: [warmBases.warmId, warmBases.host], set });
}

/** A host whose workers have been silent for longer is not asked. Chosen: three rounds of a worker's clean-up. */
const SEEN_MINUTES = 30;

export async function noteHost(db: Queryable, { host: name, taskQueue }: WarmHost): Promise<void> {
  const seen = { taskQueue: taskQueue ?? null, seenAt: sql`now()` };
  await db
    .insert(sandboxHosts)
    .values({ name, ...seen })
    .onConflictDoUpdate({ target: sandboxHosts.name, set: seen });
}

/** Hosts whose workers were there lately: one for each queue. */
export async function hostsSeen(db: Queryable): Promise<WarmHost[]> {
  const rows = await db
    .select()
    .from(sandboxHosts)
    .where(gt(sandboxHosts.seenAt, sql`now() - ${SEEN_MINUTES} * interval '1 minute'`))
    .orderBy(asc(sandboxHosts.seenAt));
  const byQueue = new Map(rows.map(({ name, taskQueue }) => [taskQueue, name]));
  return [...byQueue].map(([taskQueue, host]) => ({ host, taskQueue: taskQueue ?? undefined }));
}
