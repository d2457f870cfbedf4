/** The workspace's files after each step that changed them: a chain of packs from a whole one on. */
import { and, desc, eq, isNull, lte, sql } from "drizzle-orm";
import { readChain, type StoredPack, type WorkspaceFile } from "../sandbox/workspace-pack.ts";
import type { Queryable } from "./db.ts";
import { checkpoints } from "./schema.ts";

/** A checkpoint without its pack, which may be large. */
export interface Checkpoint {
  readonly id: number;
  readonly sessionId: string;
  readonly epoch: number;
  readonly step: number;
  readonly parentId: number | null;
  readonly manifest: Uint8Array;
  /** Of the row's content: another one after each write. */
  readonly version: string;
  /** How many checkpoints must be read to restore it, itself included. */
  readonly depth: number;
}

export interface NewCheckpoint extends StoredPack {
  readonly sessionId: string;
  readonly epoch: number;
  readonly step: number;
  /** True where the pack holds everything. */
  readonly whole: boolean;
  /** The checkpoint that the pack builds on; nothing for a whole one. */
  readonly base?: Checkpoint | undefined;
}

/**
 * Stores a checkpoint: one row for (session, epoch, step). Saving the step again replaces its content, as long as no
 * later checkpoint builds on it: then the row stays as it is.
 * @returns the row's id
 * @throws RangeError when it is neither whole nor has a base.
 */
export async function saveCheckpoint(db: Queryable, checkpoint: NewCheckpoint): Promise<number> {
  const { sessionId, epoch, step, manifest, pack, whole, base } = checkpoint;
  if (!whole && base === undefined) throw new RangeError("A checkpoint of changes needs what it builds on.");
  const content = { parentId: whole ? null : (base?.id ?? null), manifest, pack };
  const [written] = await db
    .insert(checkpoints)
    .values({ sessionId, epoch, step, ...content })
    .onConflictDoUpdate({
      target: [checkpoints.sessionId, checkpoints.epoch, checkpoints.step],
      set: content,
      // A late attempt must not change what a newer checkpoint stands on.
      setWhere: sql`not exists (select 1 from ${checkpoints} child where child.parent_id = ${checkpoints.id})`,
    })
    .returning({ id: checkpoints.id });
  if (written !== undefined) return written.id;
  const [kept] = await db
    .select({ id: checkpoints.id })
    .from(checkpoints)
    .where(
      and(eq(checkpoints.sessionId, sessionId), eq(checkpoints.epoch, epoch), eq(checkpoints.step, step)),
    );
  if (kept === undefined) throw new Error(`The checkpoint of step ${step} was not stored.`);
  return kept.id;
}

/** The newest checkpoint of the live line, of `atStep` or before it; undefined where there is none. */
export async function latestCheckpoint(
  db: Queryable,
  sessionId: string,
  options: { readonly atStep?: number } = {},
): Promise<Checkpoint | undefined> {
  const [row] = await db
    .select({
      id: checkpoints.id,
      sessionId: checkpoints.sessionId,
      epoch: checkpoints.epoch,
      step: checkpoints.step,
      parentId: checkpoints.parentId,
      manifest: checkpoints.manifest,
      version: sql<string>`${checkpoints}.xmin::text`,
    })
    .from(checkpoints)
    .where(
      and(
        eq(checkpoints.sessionId, sessionId),
        isNull(checkpoints.supersededEpoch),
        options.atStep === undefined ? undefined : lte(checkpoints.step, options.atStep),
      ),
    )
    .orderBy(desc(checkpoints.step), desc(checkpoints.epoch))
    .limit(1);
  return row === undefined ? undefined : { ...row, depth: (await chainIds(db, row.id)).length };
}

/**
 * What a save at `step` compares with: `latest` tells whether anything changed, `base` what the pack is made against.
 * They differ where this very step was saved before in this epoch: its row is replaced then. `latest` may be of a later
 * step, saved by another worker.
 */
export async function checkpointBase(
  db: Queryable,
  at: { readonly sessionId: string; readonly epoch: number; readonly step: number },
): Promise<{ readonly latest: Checkpoint | undefined; readonly base: Checkpoint | undefined }> {
  const latest = await latestCheckpoint(db, at.sessionId);
  if (latest === undefined || latest.step !== at.step || latest.epoch !== at.epoch)
    return { latest, base: latest };
  return { latest, base: await latestCheckpoint(db, at.sessionId, { atStep: at.step - 1 }) };
}

/** Gives a checkpoint's list the times that its files got when they were restored; what it holds stays. */
export async function retimeCheckpoint(db: Queryable, id: number, manifest: Uint8Array): Promise<void> {
  await db.update(checkpoints).set({ manifest }).where(eq(checkpoints.id, id));
}

/** Id and version of the newest checkpoint of the live line, for telling whether another was stored meanwhile. */
export async function latestVersion(db: Queryable, sessionId: string): Promise<string | undefined> {
  const [row] = await db
    .select({ version: sql<string>`${checkpoints.id} || '/' || ${checkpoints}.xmin::text` })
    .from(checkpoints)
    .where(and(eq(checkpoints.sessionId, sessionId), isNull(checkpoints.supersededEpoch)))
    .orderBy(desc(checkpoints.step), desc(checkpoints.epoch))
    .limit(1);
  return row?.version;
}

/** As `latestVersion` gives it. */
export const versionOf = (checkpoint: Pick<Checkpoint, "id" | "version"> | undefined): string | undefined =>
  checkpoint && `${checkpoint.id}/${checkpoint.version}`;

/** The checkpoints that make up `id`, from the whole one on; empty where there is no such checkpoint. */
export async function checkpointChain(db: Queryable, id: number): Promise<StoredPack[]> {
  const ids = await chainIds(db, id);
  const rows: StoredPack[] = [];
  // One by one: together they may be larger than a reply should be.
  for (const link of ids) {
    const [row] = await db
      .select({ manifest: checkpoints.manifest, pack: checkpoints.pack })
      .from(checkpoints)
      .where(eq(checkpoints.id, link));
    if (row === undefined) throw new RangeError(`Checkpoint ${id} builds on ${link}, which is not there.`);
    rows.push(row);
  }
  return rows;
}

/**
 * The workspace's files after the newest checkpoint (of `atStep` or before it), in path order.
 * Paths are checked: none leaves the workspace or lies below a link. A link's target is as it was, wherever it points.
 * @returns undefined where nothing was ever saved
 * @throws RangeError when a checkpoint cannot be trusted.
 */
export async function readWorkspace(
  db: Queryable,
  sessionId: string,
  options: { readonly atStep?: number } = {},
): Promise<WorkspaceFile[] | undefined> {
  const latest = await latestCheckpoint(db, sessionId, options);
  if (latest === undefined) return undefined;
  const { entries, bytes } = await readChain(await checkpointChain(db, latest.id));
  return entries.map(({ kind, path, mode, mtime, target }): WorkspaceFile => {
    switch (kind) {
      case "file":
        return {
          kind,
          path,
          mode,
          bytes: bytes.get(path) ?? new Uint8Array(0),
          mtimeMs: Number(mtime) * 1000,
        };
      case "folder":
        return { kind, path, mode };
      case "link":
        return { kind, path, mode, target };
    }
  });
}

async function chainIds(db: Queryable, id: number): Promise<number[]> {
  const { rows } = await db.execute<{ id: string }>(sql`
    with recursive chain as (
      select id, parent_id, 0 as back from checkpoints where id = ${id}
      union all
      select c.id, c.parent_id, chain.back + 1 from checkpoints c join chain on c.id = chain.parent_id
      where chain.back < 1000
    )
    select id from chain order by back desc`);
  return rows.map((row) => Number(row.id));
}
