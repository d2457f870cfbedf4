/** The workspace's files after each step that changed them: a chain of packs that starts with a whole one. */
import { fatal, rowsGone } from "../contract/failures.ts";
import { and, desc, eq, lte, sql, type SQL, lt, ne, notExists } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import { isLive } from "./live-line.ts";
import {
  readChain,
  type StoredBytes,
  type StoredChain,
  type StoredPack,
  type WorkspaceFile,
} from "./workspace-pack.ts";
import { findBase, packsBelow, type StoredBase, wholeList } from "./bases.ts";
import type { Database, Queryable } from "./db.ts";
import { readSlices } from "./pack-slices.ts";
import { type HeldPack, packColumns, storedPack } from "./stored-objects.ts";
import { unpackMissing, type MissingPaths } from "./workspace-manifest.ts";
import { checkpoints, events } from "./schema/index.ts";
import { excluded, ANY, part, prepared } from "./statements.ts";
import type { EventType } from "./event.ts";

/** A checkpoint without its pack, which may be large. */
export interface Checkpoint {
  readonly id: number;
  readonly sessionId: string;
  readonly epoch: number;
  readonly step: number;
  readonly parentId: number | null;
  /** The base of the workspace, of which the manifest lists only what differs; null if it lists all files. */
  readonly baseKey: string | null;
  readonly manifest: Uint8Array;
  /** Version of the row's content: changes with each write. */
  readonly version: string;
  /** How many checkpoints must be read to restore it, itself included; without end if one is missing, so that the next save is whole. */
  readonly depth: number;
}

export interface NewCheckpoint extends Pick<StoredPack, "manifest"> {
  /** Files that are new or different since `base`. */
  readonly pack: HeldPack;
  readonly sessionId: string;
  readonly epoch: number;
  readonly step: number;
  /** True if the pack holds everything that the manifest lists. */
  readonly whole: boolean;
  /** Files as the base has them that differ since then; absent if there are none. */
  readonly before?: Uint8Array | undefined;
  /** As `Checkpoint.baseKey`. */
  readonly baseKey?: string | null | undefined;
  /** The checkpoint that the pack builds on; nothing for a whole one. */
  readonly base?: Checkpoint | undefined;
}

const child = alias(checkpoints, "child");

/**
 * Stores a checkpoint: one row for (session, epoch, step). Saving the step again replaces its content, as long as no
 * later checkpoint builds on it: then the row stays as it is.
 * @returns the row's id
 * @throws RangeError when it is neither whole nor has a base.
 */
export async function saveCheckpoint(db: Queryable, checkpoint: NewCheckpoint): Promise<number> {
  const { sessionId, epoch, step, manifest, pack, before = null, whole, base, baseKey = null } = checkpoint;
  if (!whole && base === undefined) throw new RangeError("A checkpoint of changes needs what it builds on.");
  const packed = await packColumns(db, pack);
  const content = { parentId: whole ? null : (base?.id ?? null), baseKey, manifest, ...packed, before };
  const [saved] = await db
    .insert(checkpoints)
    .values({ sessionId, epoch, step, ...content })
    .onConflictDoUpdate({
      target: [checkpoints.sessionId, checkpoints.epoch, checkpoints.step],
      set: { ...content, pack: excluded(checkpoints.pack) },
      // A late attempt must not change a checkpoint that a newer one builds on.
      setWhere: sql`not exists (select 1 from ${checkpoints} ${child} where ${child.parentId} = ${checkpoints.id})`,
    })
    .returning({ id: checkpoints.id });
  if (saved !== undefined) return saved.id;
  const [existing] = await db
    .select({ id: checkpoints.id })
    .from(checkpoints)
    .where(
      and(eq(checkpoints.sessionId, sessionId), eq(checkpoints.epoch, epoch), eq(checkpoints.step, step)),
    );
  if (existing === undefined) throw rowsGone("the files were not stored");
  return existing.id;
}

/** The newest checkpoint of the live line, at or before `atStep`; undefined if there is none. */
export async function latestCheckpoint(
  db: Queryable,
  sessionId: string,
  options: { readonly atStep?: number } = {},
): Promise<Checkpoint | undefined> {
  return newestOf(
    db,
    and(
      isLive(checkpoints, sessionId),
      options.atStep === undefined ? undefined : lte(checkpoints.step, options.atStep),
    ),
  );
}

/** Undefined if there is none. */
const checkpointById = (db: Queryable, id: number): Promise<Checkpoint | undefined> =>
  newestOf(db, eq(checkpoints.id, id));

async function newestOf(db: Queryable, fits: SQL | undefined): Promise<Checkpoint | undefined> {
  const [row] = await db
    .select({
      id: checkpoints.id,
      sessionId: checkpoints.sessionId,
      epoch: checkpoints.epoch,
      step: checkpoints.step,
      parentId: checkpoints.parentId,
      baseKey: checkpoints.baseKey,
      manifest: checkpoints.manifest,
      version: sql<string>`${checkpoints}.xmin::text`,
    })
    .from(checkpoints)
    .where(fits)
    .orderBy(desc(checkpoints.step), desc(checkpoints.epoch))
    .limit(1);
  if (row === undefined) return undefined;
  const links = await chainOf(db, row.id);
  return { ...row, depth: brokenLink(links) === undefined ? links.length : Infinity };
}

/**
 * The checkpoints that a save at `step` compares with: `latest` shows whether anything changed, the pack builds on `base`.
 * They differ if this very step was saved before in this epoch: then its row is replaced. `latest` may belong to a later
 * step that another worker saved.
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

/** Updates a checkpoint's manifest with the times that its files got when they were restored; its content stays. */
export async function retimeCheckpoint(db: Queryable, id: number, manifest: Uint8Array): Promise<void> {
  await db.update(checkpoints).set({ manifest }).where(eq(checkpoints.id, id));
}

/** Id and version of the newest checkpoint of the live line, to detect that another was stored meanwhile. */
export async function latestVersion(db: Queryable, sessionId: string): Promise<string | undefined> {
  const [row] = await db
    .select({ version: sql<string>`${checkpoints.id} || '/' || ${checkpoints}.xmin::text` })
    .from(checkpoints)
    .where(isLive(checkpoints, sessionId))
    .orderBy(desc(checkpoints.step), desc(checkpoints.epoch))
    .limit(1);
  return row?.version;
}

/** The same format as `latestVersion` returns. */
export const toVersion = (checkpoint: Pick<Checkpoint, "id" | "version"> | undefined): string | undefined =>
  checkpoint && `${checkpoint.id}/${checkpoint.version}`;

/**
 * All files of a checkpoint, with those it builds on.
 * @throws WorkspaceLost (fatal) if one is missing, also later while the packs are read
 */
export async function checkpointChain(db: Queryable, id: number): Promise<StoredChain> {
  const { manifest, baseKey, sessionId } = await savedList(db, id);
  const packs = async function* () {
    yield* packsOf(db, id);
    // Those of a session that has left its base build on saves that have not.
    const below = baseKey ?? (await baseBelow(db, id));
    if (below !== null) yield* packsBelow(db, { baseKey: below, sessionId });
  };
  return { manifest: baseKey === null ? manifest : await wholeList(db, baseKey, manifest), packs: packs() };
}

/** Only what a checkpoint has of its own, to restore it on its base. @throws WorkspaceLost, as `checkpointChain` */
export async function differenceChain(db: Queryable, id: number): Promise<StoredChain> {
  return { manifest: (await savedList(db, id)).manifest, packs: packsOf(db, id) };
}

async function savedList(db: Queryable, id: number) {
  const [row] = await db
    .select({
      manifest: checkpoints.manifest,
      baseKey: checkpoints.baseKey,
      sessionId: checkpoints.sessionId,
    })
    .from(checkpoints)
    .where(eq(checkpoints.id, id));
  if (row === undefined) throw saveMissing(`Save ${id} of the session's files is`);
  return row;
}

/** The base of the oldest checkpoint that one builds on. */
async function baseBelow(db: Queryable, id: number): Promise<string | null> {
  const [oldest] = await chainOf(db, id);
  return oldest === undefined ? null : (await savedList(db, oldest.id)).baseKey;
}

interface Link {
  readonly id: number;
  readonly parentId: number | null;
}

async function* packsOf(db: Queryable, id: number): AsyncGenerator<StoredBytes> {
  const links = await chainOf(db, id);
  const broken = brokenLink(links);
  if (broken !== undefined)
    throw saveMissing(`Save ${broken.parentId} of the session's files, on which save ${id} builds, is`);
  for (const link of links.toReversed()) {
    const pack = await storedPack(db, checkpoints, eq(checkpoints.id, link.id));
    if (pack === undefined) throw saveMissing(`Save ${link.id} of the session's files is`);
    yield pack;
  }
}

/**
 * The workspace's files after the newest checkpoint (of `atStep` or before it), in path order.
 * Paths are checked: none leaves the workspace or lies below a link. A link's target is unchanged, wherever it points.
 * @returns undefined if nothing was ever saved
 * @throws RangeError when a checkpoint cannot be trusted; WorkspaceLost (fatal) when one is missing
 */
export async function readWorkspace(
  db: Database,
  sessionId: string,
  options: { readonly atStep?: number } = {},
): Promise<WorkspaceFile[] | undefined> {
  const listing = await db.transaction(
    async (tx) => {
      const latest = await latestCheckpoint(tx, sessionId, options);
      return latest && readChain(await checkpointChain(tx, latest.id));
    },
    // Saving a step again replaces its checkpoint.
    { isolationLevel: "repeatable read" },
  );
  if (listing === undefined) return undefined;
  const { entries, bytes } = listing;
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

/** The base of the newest checkpoint if the store does not have all of its files: then only the repository has them. */
export async function readLargeBase(db: Queryable, sessionId: string): Promise<StoredBase | undefined> {
  const key = (await latestCheckpoint(db, sessionId))?.baseKey ?? undefined;
  const base = key === undefined ? undefined : await findBase(db, key);
  return base?.isWhole === false ? base : undefined;
}

/** What the newest checkpoint could not hold; undefined if nothing was ever saved. */
export async function readMissing(db: Queryable, sessionId: string): Promise<MissingPaths | undefined> {
  const latest = await latestCheckpoint(db, sessionId);
  return latest && unpackMissing((await checkpointChain(db, latest.id)).manifest);
}

/** The packs of one checkpoint: what it keeps, and what was there before where it has that. */
export async function* ownPacks(db: Queryable, id: number): AsyncGenerator<StoredBytes> {
  const isRow = eq(checkpoints.id, id);
  const pack = await storedPack(db, checkpoints, isRow);
  if (pack !== undefined && pack.byteLength > 0) yield pack;
  const { before } = checkpoints;
  const [row] = await db
    .select({ byteLength: sql<number | null>`octet_length(${before})` })
    .from(checkpoints)
    .where(isRow);
  const byteLength = row?.byteLength ?? 0;
  if (byteLength > 0) yield { byteLength, pieces: () => readSlices(db, before, isRow, byteLength) };
}

async function chainOf(db: Queryable, id: number): Promise<Link[]> {
  const { rows } = await db.execute<{ link: string; base: string | null }>(sql`
    with recursive links(link, base, back) as (
      select ${checkpoints.id}, ${checkpoints.parentId}, 0 from ${checkpoints} where ${checkpoints.id} = ${id}
      union all
      select ${checkpoints.id}, ${checkpoints.parentId}, links.back + 1
      from ${checkpoints} join links on ${checkpoints.id} = links.base
      -- Longer than MAX_CHAIN if a file that cannot be read keeps a save from being whole.
      where links.back < 1000000
    )
    select link, base from links order by back desc`);
  return rows.map(({ link, base }) => ({
    id: Number(link),
    parentId: base === null ? null : Number(base),
  }));
}

/** The checkpoint whose base is not there. */
const brokenLink = ([oldest]: readonly Link[]): Link | undefined =>
  oldest === undefined || oldest.parentId === null ? undefined : oldest;

const saveMissing = (which: string) =>
  fatal(
    "WorkspaceLost",
    `${which} not in Postgres any more. The conversation, all other saves and the sandbox are kept as they are. Bring the rows of the table checkpoints back from a backup, or go on from a step before that save: longhaul retry ID --from-step N.`,
  );

/** Stored size of all saves, including abandoned lines. Reads no save. */
export async function savedBytes(db: Queryable, sessionId: string): Promise<number> {
  const [row] = await bytesQuery(db).execute({ sessionId });
  return row?.bytes ?? 0;
}

const size = (column: unknown) => sql`pg_column_size(${column})`;
const bytesQuery = prepared((db) =>
  db
    .select({
      bytes: sql<number>`coalesce(sum(${size(checkpoints.pack)} + coalesce(${checkpoints.objectBytes}, 0) + ${size(checkpoints.manifest)} + coalesce(${size(checkpoints.before)}, 0)), 0)::float8`,
    })
    .from(checkpoints)
    .where(eq(checkpoints.sessionId, sql.placeholder("sessionId")))
    .prepare("saved_bytes"),
);

/**
 * The base for a save that replaces the newest one.
 * @returns undefined if the newest one must stay: the session began with it, or another save builds on it
 */
export async function besidesNewest(
  db: Queryable,
  newest: Checkpoint,
): Promise<{ readonly base: Checkpoint | undefined } | undefined> {
  if (newest.step < 1) return undefined;
  const above = await db
    .select({ id: checkpoints.id })
    .from(checkpoints)
    .where(eq(checkpoints.parentId, newest.id))
    .limit(1);
  if (above.length > 0) return undefined;
  return { base: newest.parentId === null ? undefined : await checkpointById(db, newest.parentId) };
}

/** Removes a replaced save, in the transaction that stores its replacement; a save that others build on stays. */
export async function removeSave(tx: Queryable, { id }: Pick<Checkpoint, "id">, by: number): Promise<void> {
  const child = alias(checkpoints, "child");
  const above = part.select(ANY).from(child).where(eq(child.parentId, id));
  await tx.delete(checkpoints).where(and(eq(checkpoints.id, id), ne(checkpoints.id, by), notExists(above)));
}

/** The model's notice about its files after a reset to before a step: some saves may have been removed. */
export async function filesAsOf(tx: Queryable, sessionId: string, step: number): Promise<string> {
  const full = "sandbox:saves-full" satisfies EventType;
  const rows = await tx
    .select({ seq: events.seq })
    .from(events)
    .where(and(eq(events.sessionId, sessionId), eq(events.type, full), lt(events.step, step)))
    .limit(1);
  return rows.length === 0
    ? "as they were then"
    : "as they were at the last save before that, which may be some steps earlier, so look at them";
}
