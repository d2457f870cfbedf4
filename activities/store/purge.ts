/** Removes a text, such as a key that leaked into a conversation, from everything that is stored of sessions. */
import { createGunzip } from "node:zlib";
import { Readable } from "node:stream";
import { getTableColumns, inArray, sql, type Column } from "drizzle-orm";
import type { PgTable } from "drizzle-orm/pg-core";
import { blobsOf, dropBlobs, loadBlobs, saveBlob } from "./blobs.ts";
import { packPieces } from "./checkpoints.ts";
import type { Database, Queryable } from "./db.ts";
import { lockFamily, type FamilyMember } from "./delete-session.ts";
import { sessionTables } from "./session-tables.ts";
import { blobs, blobUses, checkpoints, sessions, toolOutputs } from "./schema/index.ts";

const PURGED = "[purged]";

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

/** The text as JSON escapes it inside a string. */
const escaped = (text: string) => JSON.stringify(text).slice(1, -1);

async function purgeTable(
  tx: Queryable,
  table: PgTable,
  isMine: ReturnType<typeof inArray>,
  text: string,
): Promise<number> {
  let rows = 0;
  for (const column of Object.values(getTableColumns(table)).filter(holdsWords)) {
    const isJson = column.columnType === "PgJson";
    const inJson = [escaped(text), escaped(escaped(text))];
    // In JSON the unescaped form could match syntax. A plain text may contain JSON, so both forms are searched.
    const forms = [...new Set(isJson ? inJson : [text, ...inJson])].toSorted((a, b) => b.length - a.length);
    let value = sql`${column}::text`;
    for (const form of forms) value = sql`replace(${value}, ${form}, ${PURGED})`;
    const { rowCount } = await tx.execute(sql`
      update ${table} set ${sql.identifier(column.name)} = ${isJson ? sql`(${value})::json` : value}
      where ${isMine} and (${sql.join(
        forms.map((form) => sql`strpos(${column}::text, ${form}) > 0`),
        sql` or `,
      )})`);
    rows += rowCount ?? 0;
  }
  return rows;
}

/** Columns that identify rows are not searched. */
const holdsWords = (column: Column) =>
  (column.columnType === "PgText" || column.columnType === "PgJson") &&
  !column.primary &&
  column.name !== "session_id";

/** Whole outputs are read by offset: the replacement has the same length, also across two pieces. */
async function purgeOutputs(tx: Queryable, ids: readonly string[], text: string): Promise<number> {
  const filler = "*".repeat(text.length);
  const { rowCount } = await tx.execute(sql`
    update tool_outputs set content = replace(content, ${text}, ${filler})
    where session_id in ${[...ids]} and strpos(content, ${text}) > 0`);
  const most = text.length - 1;
  interface Seam extends Record<string, unknown> {
    readonly id: string;
    readonly handle: string;
    readonly part: number;
    readonly tail: string;
    readonly head: string;
  }
  const { rows } = await tx.execute<Seam>(sql`
    select a.session_id as id, a.handle, a.part, right(a.content, ${most}) as tail, left(b.content, ${most}) as head
    from tool_outputs a join tool_outputs b
      on b.session_id = a.session_id and b.handle = a.handle and b.part = a.part + 1
    where a.session_id in ${[...ids]} and strpos(right(a.content, ${most}) || left(b.content, ${most}), ${text}) > 0`);
  for (const { id, handle, part, tail, head } of rows) {
    const clean = (tail + head).replaceAll(text, filler);
    const [end, start] = [clean.slice(0, tail.length), clean.slice(tail.length)];
    await tx.execute(sql`
      update tool_outputs set content = left(content, length(content) - length(${tail}::text)) || ${end}
      where session_id = ${id} and handle = ${handle} and part = ${part}`);
    await tx.execute(sql`
      update tool_outputs set content = ${start} || substr(content, length(${head}::text) + 1)
      where session_id = ${id} and handle = ${handle} and part = ${part + 1}`);
  }
  return (rowCount ?? 0) + rows.length;
}

/** Long texts are stored again without it; images and documents cannot be changed. */
async function purgeBlobs(tx: Queryable, ids: readonly string[], text: string) {
  const names = await blobsOf(tx, ids);
  const found = [...(await loadBlobs(tx, names))].filter(([, bytes]) => Buffer.from(bytes).includes(text));
  const cleaned: string[] = [];
  for (const [sha256, bytes] of found) {
    const [row] = await tx
      .select({ mediaType: blobs.mediaType })
      .from(blobs)
      .where(inArray(blobs.sha256, [sha256]));
    if (row?.mediaType.startsWith("text/") !== true) continue;
    cleaned.push(sha256);
    const clean = Buffer.from(Buffer.from(bytes).toString().replaceAll(text, PURGED));
    const { data } = await saveBlob(tx, clean, row.mediaType);
    for (const [table, column] of [
      ["stored_messages", "content"],
      ["guidance", "parts"],
    ] as const)
      await tx.execute(sql`
        update ${sql.identifier(table)} set ${sql.identifier(column)} =
          replace(${sql.identifier(column)}::text, ${`@blob:${sha256}`}, ${data})::json
        where session_id in ${[...ids]} and strpos(${sql.identifier(column)}::text, ${sha256}) > 0`);
    await tx.execute(sql`delete from blob_uses where session_id in ${[...ids]} and sha256 = ${sha256}`);
  }
  await dropBlobs(tx, cleaned);
  return { files: found.length - cleaned.length };
}

async function savesWith(db: Database, ids: readonly string[], text: string): Promise<Purged["saves"]> {
  const all = await db
    .select({ id: checkpoints.id, sessionId: checkpoints.sessionId, step: checkpoints.step })
    .from(checkpoints)
    .where(inArray(checkpoints.sessionId, [...ids]))
    .orderBy(checkpoints.step);
  const found = new Map<string, number[]>();
  for (const { id, sessionId, step } of all)
    if (await packHas(db, id, text))
      found.set(sessionId, [...(found.get(sessionId) ?? []), Math.max(0, step)]);
  return [...found].map(([id, steps]) => ({ id, steps }));
}

async function packHas(db: Database, id: number, text: string): Promise<boolean> {
  const needle = Buffer.from(text);
  let before = Buffer.alloc(0);
  let isFound = false;
  const unpacked = Readable.from(packPieces(db, id)).compose(createGunzip());
  for await (const piece of unpacked) {
    const bytes = Buffer.concat([before, piece as Buffer]);
    // Read to the end even after a match: a stream that is abandoned fails later, outside any handler.
    isFound ||= bytes.includes(needle);
    before = bytes.subarray(Math.max(0, bytes.length - needle.length + 1));
  }
  return isFound;
}
