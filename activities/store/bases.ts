/** Bases of workspaces: checkouts that the saves of many sessions list their difference to. */
import { and, desc, eq, inArray, isNotNull, notExists, sql } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";
import { rowsGone } from "../contract/failures.ts";
import type { Queryable } from "./db.ts";
import { readSlices } from "./pack-slices.ts";
import { type HeldPack, packColumns, storedPack } from "./stored-objects.ts";
import { bases, checkpoints, warmBases } from "./schema/index.ts";
import { ANY, part } from "./statements.ts";
import { overBase } from "./workspace-manifest.ts";
import type { StoredBytes, StoredChain } from "./workspace-pack.ts";

export interface StoredBase {
  readonly key: string;
  /** Bases of one family differ in their commit only. */
  readonly family: string;
  readonly url: string;
  readonly commit: string;
}

interface NewBase extends StoredBase {
  readonly manifest: Uint8Array;
  readonly pack: HeldPack;
  /** Whether the pack has all files: those of a base that is too large for a save are in its repository only. */
  readonly isWhole: boolean;
}

export async function findBase(
  db: Queryable,
  key: string,
): Promise<(StoredBase & Pick<NewBase, "isWhole">) | undefined> {
  const { family, url, commit, isWhole } = bases;
  const [row] = await db
    .select({ key: bases.key, family, url, commit, isWhole })
    .from(bases)
    .where(eq(bases.key, key));
  return row;
}

/** How many are looked at, the newest first. */
const MAX_RELATED = 20;

/** Bases that differ in their commit only, the newest first. */
export async function relatedBases(db: Queryable, ofFamily: string): Promise<StoredBase[]> {
  const { key, family, url, commit, createdAt } = bases;
  return db
    .select({ key, family, url, commit })
    .from(bases)
    .where(eq(family, ofFamily))
    .orderBy(desc(createdAt))
    .limit(MAX_RELATED);
}

/** Idempotent: a base is never written again. To be called in a transaction. */
export async function saveBase(tx: Queryable, { pack, ...base }: NewBase): Promise<void> {
  await tx
    .insert(bases)
    .values({ ...base, ...(await packColumns(tx, pack)) })
    .onConflictDoNothing();
}

/** The list of all files of a workspace on a base. @throws RecordMissing (retryable) */
export async function wholeList(db: Queryable, key: string, difference: Uint8Array): Promise<Uint8Array> {
  return overBase(await baseList(db, key), difference);
}

async function baseList(db: Queryable, key: string): Promise<Uint8Array> {
  const [row] = await db.select({ manifest: bases.manifest }).from(bases).where(eq(bases.key, key));
  if (row === undefined) throw rowsGone("the files were not read");
  return row.manifest;
}

/** All files of a base that the store has. @throws RecordMissing (retryable) */
export async function baseChain(db: Queryable, key: string): Promise<StoredChain> {
  return { manifest: await baseList(db, key), packs: basePacks(db, key) };
}

const bytesIn = (column: PgColumn) => sql<number>`octet_length(${column})`;

/** A base's own pack. @throws RecordMissing (retryable) */
export async function* basePacks(db: Queryable, key: string): AsyncGenerator<StoredBytes> {
  const pack = await storedPack(db, bases, eq(bases.key, key));
  if (pack === undefined) throw rowsGone("the files were not read");
  yield pack;
}

/** What the store has of a base's files for a session: what its saves kept where it changed them, then the base's own pack. */
export async function* packsBelow(
  db: Queryable,
  { baseKey, sessionId }: { readonly baseKey: string; readonly sessionId: string },
): AsyncGenerator<StoredBytes> {
  const { id, before } = checkpoints;
  const rows = await db
    .select({ id, byteLength: bytesIn(before) })
    .from(checkpoints)
    .where(and(eq(checkpoints.sessionId, sessionId), eq(checkpoints.baseKey, baseKey), isNotNull(before)));
  for (const row of rows)
    yield {
      byteLength: row.byteLength,
      pieces: () => readSlices(db, before, eq(id, row.id), row.byteLength),
    };
  yield* basePacks(db, baseKey);
}

/** Keeps a base from being removed until the transaction ends. @returns false if it is gone */
export async function holdBase(tx: Queryable, key: string): Promise<boolean> {
  const rows = await tx.select({ key: bases.key }).from(bases).where(eq(bases.key, key)).for("key share");
  return rows.length > 0;
}

/** Removes bases that no save is the difference to and that nothing keeps warm, but those that a save is just being stored with. */
export async function removeUnusedBases(tx: Queryable): Promise<void> {
  const builds = part.select(ANY).from(checkpoints).where(eq(checkpoints.baseKey, bases.key));
  const keeps = part.select(ANY).from(warmBases).where(eq(warmBases.baseKey, bases.key));
  const unused = await tx
    .select({ key: bases.key })
    .from(bases)
    .where(and(notExists(builds), notExists(keeps)))
    .for("update", { skipLocked: true });
  const keys = unused.map(({ key }) => key);
  if (keys.length > 0) await tx.delete(bases).where(inArray(bases.key, keys));
}
