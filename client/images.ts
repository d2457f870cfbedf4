/** Files that go with a task or a message. */
import { readFile } from "node:fs/promises";
import { basename, extname } from "node:path";
import { usageError } from "./errors.ts";

const MEDIA_TYPES: Readonly<Record<string, string>> = {
  ".png": "image/png",
  ".jpg": "image/jpeg",
  ".jpeg": "image/jpeg",
  ".gif": "image/gif",
  ".webp": "image/webp",
  ".pdf": "application/pdf",
};
/** What one request carries of media: a larger file would never be seen. Providers take 20 MB. */
const MAX_IMAGE_BYTES = 8 * 1024 * 1024;

export interface Attachment {
  readonly bytes: Uint8Array;
  readonly mediaType: string;
  readonly filename: string;
}

/** Reads images and PDFs. @throws ClientError (usage) for what is none, is missing or is larger than 8 MiB */
export async function readAttachments(paths: readonly string[]): Promise<Attachment[]> {
  const all: Attachment[] = [];
  for (const path of paths) {
    const mediaType = MEDIA_TYPES[extname(path).toLowerCase()];
    if (mediaType === undefined) {
      throw usageError(`--image: ${path} is none of ${Object.keys(MEDIA_TYPES).join(", ")}.`);
    }
    const bytes = await readFile(path).catch((error: NodeJS.ErrnoException) => {
      throw usageError(`--image: ${path} cannot be read (${error.code ?? error.message}).`);
    });
    if (bytes.length === 0 || bytes.length > MAX_IMAGE_BYTES) {
      throw usageError(
        `--image: ${path} has ${bytes.length} bytes; between 1 and ${MAX_IMAGE_BYTES} are taken.`,
      );
    }
    all.push({ bytes, mediaType, filename: basename(path) });
  }
  return all;
}
