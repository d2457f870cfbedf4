/** Files attached to a task or a message. */
import { readFile, stat } from "node:fs/promises";
import { basename, extname } from "node:path";
import { cutChars } from "../../activities/contract/cut-text.ts";
import { imageTypeOf, isPdf } from "../../activities/contract/image-type.ts";
import { ClientError, usageError, unreadable } from "../console/errors.ts";
import { oneLine } from "../console/format.ts";

const EXTENSIONS = [".png", ".jpg", ".jpeg", ".gif", ".webp", ".pdf"];
const MAX_NAME_CHARS = 200;
/** Limit of media in one request: a larger file would never be sent. Providers accept 20 MB. */
const MAX_IMAGE_BYTES = 8 * 1024 * 1024;

export interface Attachment {
  readonly bytes: Uint8Array;
  readonly mediaType: string;
  readonly filename: string;
}

/** Its cleaned name and media type for the store. */
export function cleanAttachment(file: Attachment, clean: (text: string) => string): Attachment {
  const name = (text: string) => cutChars(clean(text), MAX_NAME_CHARS);
  return { bytes: file.bytes, mediaType: name(file.mediaType), filename: name(file.filename) };
}

/** Notes for the person, one per line, about files that the model does not accept. */
export function notShown(
  attachments: readonly Attachment[],
  { model, input }: { readonly model: string; readonly input: readonly string[] },
): string[] {
  return attachments
    .filter(({ mediaType }) => !input.includes(mediaType.startsWith("image/") ? "image" : "pdf"))
    .map(
      ({ filename, mediaType }) =>
        `${model} does not take ${mediaType}: ${oneLine(filename, 80)} is stored, and the model gets a line of text that says so. Choose another model with --model, or set models.${model}.input if it does.`,
    );
}

/** Reads images and PDFs, recognised by their content. @throws ClientError (usage) for other, missing or files larger than 8 MiB */
export async function readAttachments(paths: readonly string[]): Promise<Attachment[]> {
  const all: Attachment[] = [];
  for (const path of paths) {
    if (!EXTENSIONS.includes(extname(path).toLowerCase()))
      throw usageError(`--image: ${path} is not one of ${EXTENSIONS.join(", ")}.`);
    const called = `--image: ${path}`;
    const bytes = await readRegular(path, called).catch((error: unknown) => {
      throw error instanceof ClientError ? error : unreadable(called, error);
    });
    all.push(attachmentOf(basename(path), bytes, called));
  }
  return all;
}

/** Reading a pipe would block, and a device has no end. */
async function readRegular(path: string, called: string): Promise<Uint8Array> {
  const found = await stat(path);
  if (!found.isFile() && !found.isDirectory()) throw usageError(`${called} is not a regular file.`);
  if (found.isFile()) requireSize(called, found.size);
  return readFile(path);
}

function requireSize(called: string, size: number): void {
  if (size === 0 || size > MAX_IMAGE_BYTES)
    throw usageError(`${called} has ${size} bytes; it must have 1 to ${MAX_IMAGE_BYTES}.`);
}

/** @param called its name in an error. @throws ClientError (usage) for content that is not an image or PDF, or larger than 8 MiB */
export function attachmentOf(filename: string, bytes: Uint8Array, called = filename): Attachment {
  requireSize(called, bytes.length);
  // The provider would refuse the whole request because of this file.
  const mediaType = imageTypeOf(bytes) ?? (isPdf(bytes) ? "application/pdf" : undefined);
  if (mediaType === undefined)
    throw usageError(`${called} is not a PNG, JPEG, GIF, WebP or PDF by its content.`);
  return { bytes, mediaType, filename };
}
