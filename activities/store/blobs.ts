/** Images, files and long texts by SHA-256: the same bytes are stored once. */
import { createHash } from "node:crypto";
import { eq, inArray } from "drizzle-orm";
import type { FilePart } from "../contract/message.ts";
import type { Queryable } from "./db.ts";
import { blobs } from "./schema/index.ts";

const PREFIX = "@blob:";

/** Stores bytes and returns the part that stands for them in a message. Idempotent. */
export async function saveBlob(
  db: Queryable,
  bytes: Uint8Array,
  mediaType: string,
  filename?: string,
): Promise<FilePart> {
  const sha256 = createHash("sha256").update(bytes).digest("hex");
  await db.insert(blobs).values({ sha256, mediaType, bytes }).onConflictDoNothing();
  return {
    type: "file",
    mediaType,
    data: `${PREFIX}${sha256}`,
    ...(filename === undefined ? {} : { filename }),
  };
}

/** The SHA-256 a part refers to, or undefined where it holds its data itself. */
export function blobId(part: FilePart): string | undefined {
  return part.data.startsWith(PREFIX) ? part.data.slice(PREFIX.length) : undefined;
}

export async function hasBlob(db: Queryable, id: string): Promise<boolean> {
  const found = await db.select({ sha256: blobs.sha256 }).from(blobs).where(eq(blobs.sha256, id));
  return found.length > 0;
}

/** The bytes of several blobs by id; ids that are not there are left out. */
export async function loadBlobs(
  db: Queryable,
  ids: readonly string[],
): Promise<ReadonlyMap<string, Uint8Array>> {
  if (ids.length === 0) return new Map();
  const rows = await db
    .select({ sha256: blobs.sha256, bytes: blobs.bytes })
    .from(blobs)
    .where(inArray(blobs.sha256, [...ids]));
  return new Map(rows.map((row) => [row.sha256, row.bytes]));
}
