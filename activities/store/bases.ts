/** Bases of workspaces: checkouts that the saves of many sessions list their difference to. */
import { eq, notExists, sql } from "drizzle-orm";
import { rowsGone } from "../contract/failures.ts";
import type { Queryable } from "./db.ts";
import { readSlices, storable } from "./pack-slices.ts";
import { bases, checkpoints } from "./schema/index.ts";
import { ANY, part } from "./statements.ts";
import { overBase } from "./workspace-manifest.ts";
import type { StoredBytes, StoredChain, StoredPack } from "./workspace-pack.ts";

export interface StoredBase {
  readonly key: string;
  readonly url: string;
  readonly commit: string;
}

interface NewBase extends StoredBase {
  readonly manifest: Uint8Array;
  /** Undefined if it is too large for a save. */
  readonly pack: StoredPack["pack"] | undefined;
}

/** Whether a base's files are all in the store; undefined if there is no such base. */
export async function findBase(
  db: Queryable,
  key: string,
): Promise<(StoredBase & { readonly isKept: boolean }) | undefined> {
  const { url, commit } = bases;
  const isKept = sql<boolean>`${bases.pack} is not null`;
  const [row] = await db
    .select({ key: bases.key, url, commit, isKept })
    .from(bases)
    .where(eq(bases.key, key));
  return row;
}

/** Idempotent: a base is never written again. To be called in a transaction. */
export async function saveBase(tx: Queryable, { pack, ...base }: NewBase): Promise<void> {
  const stored = pack === undefined ? null : await storable(tx, pack);
  await tx
    .insert(bases)
    .values({ ...base, pack: stored })
    .onConflictDoNothing();
}

/** The list of all files of a workspace on a base. @throws RecordMissing (retryable) */
export async function wholeList(db: Queryable, key: string, difference: Uint8Array): Promise<Uint8Array> {
  const { manifest, isKept } = await baseList(db, key);
  return overBase(manifest, difference, { isKept });
}

async function baseList(db: Queryable, key: string) {
  const isKept = sql<boolean>`${bases.pack} is not null`;
  const [row] = await db.select({ manifest: bases.manifest, isKept }).from(bases).where(eq(bases.key, key));
  if (row === undefined) throw rowsGone("the files were not read");
  return row;
}

/** All files of a base that the store has. @throws RecordMissing (retryable) */
export async function baseChain(db: Queryable, key: string): Promise<StoredChain> {
  const { manifest } = await baseList(db, key);
  return { manifest, packs: basePacks(db, key) };
}

/** A base's pack, if the store has it. */
export async function* basePacks(db: Queryable, key: string): AsyncGenerator<StoredBytes> {
  const isRow = eq(bases.key, key);
  const [row] = await db
    .select({ byteLength: sql<number | null>`octet_length(${bases.pack})` })
    .from(bases)
    .where(isRow);
  const byteLength = row?.byteLength ?? 0;
  if (byteLength > 0) yield { byteLength, pieces: () => readSlices(db, bases, isRow, byteLength) };
}

/** Removes bases that no save is the difference to. */
export async function removeUnusedBases(tx: Queryable): Promise<void> {
  await tx
    .delete(bases)
    .where(notExists(part.select(ANY).from(checkpoints).where(eq(checkpoints.baseKey, bases.key))));
}
