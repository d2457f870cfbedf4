/** Removes a text, such as a key that leaked into a conversation, from everything that is stored of sessions. */
import { createGunzip } from "node:zlib";
import { Readable } from "node:stream";
import { StringDecoder } from "node:string_decoder";
import { and, asc, eq, getTableColumns, inArray, sql, type Column } from "drizzle-orm";
import type { PgTable } from "drizzle-orm/pg-core";
import { cleanDeep } from "../text/clean.ts";
import { createMasker } from "../redaction/secret-mask.ts";
import { blobsOf, dropBlobs, loadBlobs, saveBlob } from "./blobs.ts";
import { basePacks } from "./bases.ts";
import { ownPacks } from "./checkpoints.ts";
import type { Database, Queryable } from "./db.ts";
import { lockFamily, type FamilyMember } from "./delete-session.ts";
import { sessionTables } from "./session-tables.ts";
import {
  blobs,
  blobUses,
  checkpoints,
  guidance,
  sessions,
  storedMessages,
  toolOutputs,
} from "./schema/index.ts";
import { assigned } from "./statements.ts";
import type { StoredBytes } from "./workspace-pack.ts";

const PURGED = "[purged]";
/** Rows that are read and written at once. */
const ROWS_AT_ONCE = 50;

/** Finds the text however it is spelled, as the sanitizer does: escaped, quoted, encoded. Other secrets stay as they are. */
const finderOf = (text: string) => createMasker([text], []);

export interface Purged {
  /** Number of rows that contained it. */
  readonly rows: number;
  /** Files in messages that still contain it: their content cannot be replaced. */
  readonly files: number;
  /** Steps after which the saved workspace contains it, by session: saves are not changed. */
  readonly saves: readonly { readonly id: string; readonly steps: readonly number[] }[];
}

/**
 * @param family sessions that were found not to run
 * @returns undefined, with nothing changed, if a run has claimed one of them since: it could store what it has read again
 */
export async function purgeText(
  db: Database,
  family: readonly FamilyMember[],
  text: string,
): Promise<Purged | undefined> {
  const ids = family.map(({ id }) => id);
  const replaced = await db.transaction(async (tx) => {
    if (!(await lockFamily(tx, family))) return undefined;
    let rows = await purgeOutputs(tx, ids, text);
    for (const table of sessionTables())
      if (!isApart(table)) rows += await purgeTable(tx, table, inArray(table.sessionId, [...ids]), text);
    rows += await purgeTable(tx, sessions, inArray(sessions.id, [...ids]), text);
    return { rows, ...(await purgeBlobs(tx, ids, text)) };
  });
  return replaced && { ...replaced, saves: await savesWith(db, ids, text) };
}

/** Outputs keep their length, and the hashes of blobs are no words. */
const isApart = (table: PgTable) => table === toolOutputs || table === blobUses;

/** @returns how many rows contained it */
async function purgeTable(
  tx: Queryable,
  table: PgTable,
  isMine: ReturnType<typeof inArray>,
  text: string,
): Promise<number> {
  const finder = finderOf(text);
  const purged = (part: string) => finder.replace(part, () => PURGED);
  const columns = Object.values(getTableColumns(table)).filter(holdsWords);
  if (columns.length === 0) return 0;
  // A row's place stays while this transaction has it locked.
  const { rows: locations } = await tx.execute<{ place: string }>(
    sql`select ctid::text as place from ${table} where ${isMine} for update`,
  );
  const names = sql.join(
    columns.map(({ name }) => sql`${sql.identifier(name)}::text as ${sql.identifier(name)}`),
    sql`, `,
  );
  let changed = 0;
  for (let at = 0; at < locations.length; at += ROWS_AT_ONCE) {
    const some = sql.param(locations.slice(at, at + ROWS_AT_ONCE).map(({ place }) => place));
    const { rows } = await tx.execute<Record<string, string | null>>(
      sql`select ctid::text as "row's place", ${names} from ${table} where ctid = any(${some}::tid[])`,
    );
    for (const row of rows) {
      const changes = columns.flatMap((column) => {
        const before = row[column.name] ?? "";
        // Each text of a JSON document by itself: what stands around it must stay a document.
        const isJson = column.columnType === "PgJson" && before !== "";
        const after = isJson ? purgedJson(before, purged) : purged(before);
        if (after === before) return [];
        return [sql`${sql.identifier(column.name)} = ${after}${isJson ? sql`::json` : sql``}`];
      });
      if (changes.length === 0) continue;
      changed += 1;
      await tx.execute(
        sql`update ${table} set ${sql.join(changes, sql`, `)} where ctid = ${row["row's place"]}::tid`,
      );
    }
  }
  return changed;
}

/** @returns the document as it is if it does not contain the text */
function purgedJson(before: string, purged: (part: string) => string): string {
  const value: unknown = JSON.parse(before);
  const after = JSON.stringify(cleanDeep(value, purged));
  return after === JSON.stringify(value) ? before : after;
}

/** Columns that identify rows are not searched. */
const holdsWords = (column: Column) =>
  (column.columnType === "PgText" || column.columnType === "PgJson") &&
  !column.primary &&
  column.name !== "session_id";

/** Whole outputs are read by offset: the replacement has the same length, also across two pieces. */
async function purgeOutputs(tx: Queryable, ids: readonly string[], text: string): Promise<number> {
  const finder = finderOf(text);
  const outputs = await tx
    .selectDistinct({ id: toolOutputs.sessionId, handle: toolOutputs.handle })
    .from(toolOutputs)
    .where(inArray(toolOutputs.sessionId, [...ids]));
  let changed = 0;
  for (const { id, handle } of outputs) {
    const isMine = and(eq(toolOutputs.sessionId, id), eq(toolOutputs.handle, handle));
    const parts = await tx
      .select({ part: toolOutputs.part, content: toolOutputs.content })
      .from(toolOutputs)
      .where(isMine)
      .orderBy(asc(toolOutputs.part))
      .for("update");
    const clean = finder.replace(parts.map(({ content }) => content).join(""), (chars) => "*".repeat(chars));
    let end = 0;
    for (const { part, content } of parts) {
      const begin = end;
      end += content.length;
      const now = clean.slice(begin, end);
      if (now === content) continue;
      changed += 1;
      await tx
        .update(toolOutputs)
        .set({ content: now })
        .where(and(isMine, eq(toolOutputs.part, part)));
    }
  }
  return changed;
}

/** Long texts are stored again without it; images and documents cannot be changed. */
async function purgeBlobs(tx: Queryable, ids: readonly string[], text: string) {
  const names = await blobsOf(tx, ids);
  const finder = finderOf(text);
  const purged = (part: string) => finder.replace(part, () => PURGED);
  const has = (bytes: Uint8Array) => {
    const buffer = Buffer.from(bytes);
    return buffer.includes(text) || purged(buffer.toString()) !== buffer.toString();
  };
  const matches = [...(await loadBlobs(tx, names))].filter(([, bytes]) => has(bytes));
  const cleaned: string[] = [];
  for (const [sha256, bytes] of matches) {
    const [row] = await tx
      .select({ mediaType: blobs.mediaType })
      .from(blobs)
      .where(inArray(blobs.sha256, [sha256]));
    if (row?.mediaType.startsWith("text/") !== true) continue;
    cleaned.push(sha256);
    const clean = Buffer.from(purged(Buffer.from(bytes).toString()));
    const { data } = await saveBlob(tx, clean, row.mediaType);
    for (const [table, column] of [
      [storedMessages, storedMessages.content],
      [guidance, guidance.parts],
    ] as const) {
      const without = sql`replace(${column}::text, ${`@blob:${sha256}`}, ${data})::json`;
      await tx.execute(sql`update ${table} set ${assigned([column, without])}
        where ${inArray(table.sessionId, [...ids])} and strpos(${column}::text, ${sha256}) > 0`);
    }
    await tx.delete(blobUses).where(and(inArray(blobUses.sessionId, [...ids]), eq(blobUses.sha256, sha256)));
  }
  await dropBlobs(tx, cleaned);
  return { files: matches.length - cleaned.length };
}

async function savesWith(db: Database, ids: readonly string[], text: string): Promise<Purged["saves"]> {
  const all = await db
    .select({
      id: checkpoints.id,
      sessionId: checkpoints.sessionId,
      step: checkpoints.step,
      baseKey: checkpoints.baseKey,
    })
    .from(checkpoints)
    .where(inArray(checkpoints.sessionId, [...ids]))
    .orderBy(checkpoints.step);
  // A repository is in the base of its session's saves.
  const hasByBase = new Map<string | null, boolean>([[null, false]]);
  for (const { baseKey } of all)
    if (baseKey !== null && !hasByBase.has(baseKey))
      hasByBase.set(baseKey, await packsHave(basePacks(db, baseKey), text));
  const stepsBySession = new Map<string, number[]>();
  for (const { id, sessionId, step, baseKey } of all)
    if (hasByBase.get(baseKey) === true || (await packsHave(ownPacks(db, id), text)))
      stepsBySession.set(sessionId, [...(stepsBySession.get(sessionId) ?? []), Math.max(0, step)]);
  return [...stepsBySession].map(([id, steps]) => ({ id, steps }));
}

async function packsHave(packs: AsyncIterable<StoredBytes>, text: string): Promise<boolean> {
  for await (const pack of packs) if (await packHas(pack, text)) return true;
  return false;
}

async function packHas(pack: StoredBytes, text: string): Promise<boolean> {
  const stream = finderOf(text).stream();
  const decoder = new StringDecoder("utf8");
  let pending = "";
  let isFound = false;
  const compare = (piece: string, output: string) => {
    pending += piece;
    isFound ||= !pending.startsWith(output);
    pending = pending.slice(output.length);
  };
  const unpacked = Readable.from(pack.pieces()).compose(createGunzip());
  for await (const bytes of unpacked) {
    // Read to the end even after a match: a stream that is abandoned fails later, outside any handler.
    if (isFound) continue;
    const piece = decoder.write(bytes as Buffer);
    compare(piece, stream.push(piece));
  }
  if (!isFound) compare("", stream.end());
  return isFound;
}
