/** Files attached to a task or a message. */
import { readFile } from "node:fs/promises";
import { basename, extname } from "node:path";
import { cutChars } from "../../activities/contract/cut-text.ts";
import { imageTypeOf, isPdf } from "../../activities/contract/image-type.ts";
import { usageError, unreadable } from "../console/errors.ts";
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

/** Notes for the person before a model that accepts no such files is asked: a line each. */
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
    const bytes = await readFile(path).catch((error: unknown) => {
      throw unreadable(`--image: ${path}`, error);
    });
    all.push(attachmentOf(basename(path), bytes, `--image: ${path}`));
  }
  return all;
}

/** @param called its name in an error. @throws ClientError (usage) for content that is not an image or PDF, or larger than 8 MiB */
export function attachmentOf(filename: string, bytes: Uint8Array, called = filename): Attachment {
  if (bytes.length === 0 || bytes.length > MAX_IMAGE_BYTES)
    throw usageError(`${called} has ${bytes.length} bytes; it must have 1 to ${MAX_IMAGE_BYTES}.`);
  // The provider would refuse the whole request for it.
  const mediaType = imageTypeOf(bytes) ?? (isPdf(bytes) ? "application/pdf" : undefined);
  if (mediaType === undefined)
    throw usageError(`${called} is not a PNG, JPEG, GIF, WebP or PDF by its content.`);
  return { bytes, mediaType, filename };
}
