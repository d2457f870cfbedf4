/** Packs of files are sent and read in slices: in one value the driver would copy them several times, and 100 MiB would block the thread for a second. */
import { sql, type SQL } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";
import { rowsGone } from "../contract/failures.ts";
import type { Queryable } from "./db.ts";

/** How much of a pack is sent or read at a time: bounds memory, and how long everything else waits. */
const SLICE_BYTES = 4 * 1024 * 1024;

/** The pack as the value of a column. To be called in a transaction, whose end removes the slices of a large one. */
export async function storable(db: Queryable, pack: Uint8Array): Promise<Uint8Array | SQL<Uint8Array>> {
  if (pack.byteLength <= SLICE_BYTES) return pack;
  await db.execute(sql`create temporary table pack_slices (number integer, slice bytea) on commit drop`);
  for (let at = 0; at < pack.byteLength; at += SLICE_BYTES) {
    const slice = Buffer.from(pack.buffer, pack.byteOffset + at, Math.min(SLICE_BYTES, pack.byteLength - at));
    await db.execute(sql`insert into pack_slices values (${at}, ${slice})`);
  }
  return sql`(select string_agg(slice, ''::bytea order by number) from pack_slices)`;
}

/**
 * One value, a pack, piece by piece. Postgres does not try to compress gzip data again, so a slice's cost depends on its own
 * length only.
 * @throws RecordMissing (retryable) if the row is gone
 */
export async function* readSlices(
  db: Queryable,
  column: PgColumn,
  isRow: SQL,
  byteLength: number,
): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < byteLength; at += SLICE_BYTES) {
    const slice = sql<Uint8Array>`substring(${column} from ${at + 1} for ${SLICE_BYTES})`.mapWith(column);
    const [row] = await db.select({ slice }).from(column.table).where(isRow);
    if (row === undefined) throw rowsGone("the files were not read");
    yield row.slice as Uint8Array;
  }
}
