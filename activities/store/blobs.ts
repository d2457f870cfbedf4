/**
 * Images, files and long texts by SHA-256: the same bytes are stored once. Read and written through database functions, which
 * find them by that hash only.
 */
import { inflateSync } from "node:zlib";
import { sql } from "drizzle-orm";
import { MAX_STREAM_BYTES, mediaSize, type MediaSize } from "../contract/media-size.ts";
import type { FilePart } from "../contract/message.ts";
import type { Queryable } from "./db.ts";

const PREFIX = "@blob:";

/**
 * Stores bytes and returns the part that stands for them in a message. Idempotent. Bytes that are already stored get a new
 * timestamp, so that the deletion of a session does not remove them before the new message is stored.
 */
export async function saveBlob(
  db: Queryable,
  bytes: Uint8Array,
  mediaType: string,
  filename?: string,
): Promise<FilePart> {
  const { rows } = await db.execute<{ sha256: string }>(
    sql`select longhaul_save_blob(${mediaType}, ${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)}) as sha256`,
  );
  const sha256 = rows[0]?.sha256 ?? "";
  return {
    type: "file",
    mediaType,
    data: `${PREFIX}${sha256}`,
    ...(filename === undefined ? {} : { filename }),
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
    sql`select sha256, bytes from longhaul_blobs(${sql.param([...ids])}::text[])`,
  );
  return new Map(rows.map((row) => [row.sha256, row.bytes]));
}
