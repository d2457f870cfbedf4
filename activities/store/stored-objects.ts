/** Packs of saves and bases that lie in the object store, if there is one: what Postgres knows of them. */
import { randomUUID } from "node:crypto";
import { and, eq, inArray, lt, notExists, or, sql, type SQL } from "drizzle-orm";
import { fatal } from "../contract/failures.ts";
import type { Database, Queryable } from "./db.ts";
import { readSlices, storable } from "./pack-slices.ts";
import { bases, checkpoints, storedObjects } from "./schema/index.ts";
import { ANY, part } from "./statements.ts";
import type { StoredBytes } from "./workspace-pack.ts";

/** A pack in the object store. */
interface StoredObject {
  readonly key: string;
  readonly bytes: number;
}

/** What is to be stored with a row: the pack, or where it is. */
export type HeldPack = Uint8Array | StoredObject;

/** A smaller pack stays in its row. Chosen: a request to an object store takes as long as some 256 KiB to Postgres. */
const MAX_IN_ROW_BYTES = 256 * 1024;

/** Reads a pack, or puts a large one into the object store. Before the transaction that names it, which an upload would hold up. */
export async function holdPack(db: Database, pack: StoredBytes): Promise<HeldPack> {
  const { objects } = db;
  if (objects === undefined || pack.byteLength <= MAX_IN_ROW_BYTES) return bytesOfPack(pack);
  const object = { key: randomUUID(), bytes: pack.byteLength };
  await db.insert(storedObjects).values(object);
  await objects.put(object.key, pack);
  return object;
}

/** All bytes of a pack that fits into memory. */
async function bytesOfPack(pack: StoredBytes): Promise<Uint8Array> {
  const bytes = new Uint8Array(pack.byteLength);
  let at = 0;
  for await (const piece of pack.pieces()) {
    bytes.set(piece, at);
    at += piece.byteLength;
  }
  return bytes;
}

const EMPTY = new Uint8Array();

/** The columns of a row that has the pack, for the transaction that writes it. */
export async function packColumns(tx: Queryable, pack: HeldPack) {
  if (pack instanceof Uint8Array)
    return { pack: await storable(tx, pack), packObject: null, objectBytes: null };
  await tx.update(storedObjects).set({ isUsed: true }).where(eq(storedObjects.key, pack.key));
  return { pack: EMPTY, packObject: pack.key, objectBytes: pack.bytes };
}

/** A compressed byte becomes at most 1,032. Source: RFC 1951, a match of 258 bytes in 2 bits. */
const MAX_RATIO = 1_032;

/** The pack of the row of `table` that fits. @returns undefined without such a row */
export async function storedPack(
  db: Queryable,
  table: typeof checkpoints | typeof bases,
  isRow: SQL,
): Promise<StoredBytes | undefined> {
  const [row] = await db
    .select({
      rowBytes: sql<number>`octet_length(${table.pack})`,
      packObject: table.packObject,
      objectBytes: table.objectBytes,
    })
    .from(table)
    .where(isRow);
  if (row === undefined) return undefined;
  const { rowBytes, packObject, objectBytes } = row;
  if (packObject === null)
    return { byteLength: rowBytes, pieces: () => readSlices(db, table.pack, isRow, rowBytes) };
  const byteLength = objectBytes ?? 0;
  return {
    byteLength,
    mostBytes: byteLength * MAX_RATIO,
    pieces: () => objectsHere(db).read(packObject),
  };
}

/** @throws StoreMissing (fatal) */
function objectsHere({ objects }: Queryable) {
  if (objects !== undefined) return objects;
  throw fatal(
    "StoreUnavailable",
    "The files of this save are in an object store, and LONGHAUL_STORE is not set here. Nothing was changed. Set it to what the workers have, with credentials that may read it.",
  );
}

/** An upload that ends later finds its row gone. Chosen: longer than any activity. */
const UPLOAD_HOURS = 24;
/** In one transaction. Source: what S3 removes by one request. */
const MAX_REMOVED = 1_000;

/** Removes objects that no save and no base names any more, or that were never named. @returns how many */
export async function removeUnusedObjects(db: Database): Promise<number> {
  const { objects } = db;
  if (objects === undefined) return 0;
  const { key, isUsed, createdAt } = storedObjects;
  return db.transaction(async (tx) => {
    const named = [checkpoints, bases].map((table) =>
      notExists(part.select(ANY).from(table).where(eq(table.packObject, key))),
    );
    const isLate = lt(createdAt, sql`now() - ${UPLOAD_HOURS} * interval '1 hour'`);
    const unused = await tx
      .select({ key })
      .from(storedObjects)
      .where(and(or(eq(isUsed, true), isLate), ...named))
      .limit(MAX_REMOVED)
      .for("update", { skipLocked: true });
    const keys = unused.map((row) => row.key);
    if (keys.length === 0) return 0;
    await objects.remove(keys);
    await tx.delete(storedObjects).where(inArray(key, keys));
    return keys.length;
  });
}
