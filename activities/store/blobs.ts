/**
 * Images, files and long texts by SHA-256: the same bytes are stored once. Read and written through database functions, which
 * find them by that hash only.
 */
import { inflateSync } from "node:zlib";
import { and, asc, eq, inArray, notExists, sql } from "drizzle-orm";
import { MAX_STREAM_BYTES, mediaSize, type MediaSize } from "./media.ts";
import type { FilePart } from "../contract/message.ts";
import type { Queryable } from "./db.ts";
import { blobs, blobUses } from "./schema/index.ts";
import { ANY, part as query } from "./statements.ts";

const PREFIX = "@blob:";

/** A file as it is stored. */
interface BlobFile {
  readonly bytes: Uint8Array;
  readonly mediaType: string;
  readonly filename?: string | undefined;
}

const asBuffer = ({ buffer, byteOffset, byteLength }: Uint8Array) =>
  Buffer.from(buffer, byteOffset, byteLength);

/**
 * Stores bytes and returns the part that stands for them in a message. Idempotent. Call it in the transaction that stores the
 * message: the row that names the bytes is what keeps them. Otherwise see `saveBlobFor`.
 */
export async function saveBlob(
  db: Queryable,
  bytes: Uint8Array,
  mediaType: string,
  filename?: string,
): Promise<FilePart> {
  const { rows } = await db.execute<{ saved: string }>(
    sql`select longhaul_save_blob(${mediaType}, ${asBuffer(bytes)}) as saved`,
  );
  return partOf(rows[0]?.saved, { bytes, mediaType, filename });
}

/**
 * As `saveBlob`, for a message that is stored later: until then it may be in a workflow's queue only. The session, which need
 * not exist yet, keeps the bytes from now on until it is deleted, whatever happens to other sessions that have the same ones.
 */
export async function saveBlobFor(db: Queryable, sessionId: string, file: BlobFile): Promise<FilePart> {
  const { rows } = await db.execute<{ saved: string }>(
    sql`select longhaul_keep_blob(${sessionId}, ${file.mediaType}, ${asBuffer(file.bytes)}) as saved`,
  );
  return partOf(rows[0]?.saved, file);
}

/** Ids of the blobs that these sessions use: in their messages, and in those that are still on their way. */
export async function blobsOf(tx: Queryable, sessionIds: readonly string[]): Promise<string[]> {
  const rows = await tx
    .selectDistinct({ sha256: blobUses.sha256 })
    .from(blobUses)
    .where(inArray(blobUses.sessionId, [...sessionIds]))
    .orderBy(asc(blobUses.sha256));
  return rows.map(({ sha256 }) => sha256);
}

/** Removes those of the blobs that no session uses any more. */
export async function dropBlobs(tx: Queryable, candidates: readonly string[]): Promise<void> {
  if (candidates.length === 0) return;
  // Who saves the same bytes meanwhile waits for us, or we for them: the second statement sees their use.
  const isCandidate = inArray(blobs.sha256, [...candidates]);
  await tx
    .select({ id: blobs.sha256 })
    .from(blobs)
    .where(isCandidate)
    .orderBy(asc(blobs.sha256))
    .for("update");
  const uses = query.select(ANY).from(blobUses).where(eq(blobUses.sha256, blobs.sha256));
  await tx.delete(blobs).where(and(isCandidate, notExists(uses)));
}

function partOf(sha256 = "", { bytes, mediaType, filename }: BlobFile): FilePart {
  return {
    type: "file",
    mediaType,
    data: `${PREFIX}${sha256}`,
    filename,
    ...sizeOf(bytes, mediaType),
  };
}

function sizeOf(bytes: Uint8Array, mediaType: string): MediaSize {
  return mediaSize(bytes, mediaType, (compressed) => {
    try {
      return inflateSync(compressed, { maxOutputLength: MAX_STREAM_BYTES });
    } catch {
      return undefined;
    }
  });
}

/** The SHA-256 a part refers to, or undefined if it holds its data itself. */
export function blobId(part: FilePart): string | undefined {
  return part.data.startsWith(PREFIX) ? part.data.slice(PREFIX.length) : undefined;
}

/** A part that names a stored file, with its actual size; undefined if there is none. */
export async function withStoredSize(db: Queryable, part: FilePart): Promise<FilePart | undefined> {
  const id = blobId(part) ?? "";
  const bytes = (await loadBlobs(db, [id])).get(id);
  return bytes && { ...part, ...sizeOf(bytes, part.mediaType) };
}

/** The bytes of several blobs by id; unknown ids are left out. */
export async function loadBlobs(
  db: Queryable,
  ids: readonly string[],
): Promise<ReadonlyMap<string, Uint8Array>> {
  if (ids.length === 0) return new Map();
  const { rows } = await db.execute<{ sha256: string; bytes: Buffer }>(
    sql`select * from longhaul_blobs(${sql.param([...ids])}::text[])`,
  );
  return new Map(rows.map((row) => [row.sha256, row.bytes]));
}
