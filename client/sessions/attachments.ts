/** Files attached to a task or a message. */
import { readFile, stat } from "node:fs/promises";
import { basename, extname } from "node:path";
import { cutChars } from "../../activities/text/cut.ts";
import { type FoundText, readText } from "../../activities/text/encoding.ts";
import { cleanText } from "../../activities/text/clean.ts";
import { detectImageType, isPdf } from "../../activities/store/media.ts";
import { fileText } from "../../activities/contract/message.ts";
import { ClientError, usageError, unreadable } from "../console/errors.ts";
import { harmlessLine } from "../console/format.ts";
import { MAX_TEXT_CHARS } from "./task-input.ts";

const EXTENSIONS = [".png", ".jpg", ".jpeg", ".gif", ".webp", ".pdf"];
const MAX_NAME_CHARS = 200;
/** Limit of media in one request: a larger file would never be sent. Providers accept 20 MB. */
const MAX_IMAGE_BYTES = 8 * 1024 * 1024;
/** Files of one message. Chosen: what a run gets of one message, each file named, stays one item. */
const MAX_FILES = 50;
const TEXT = "text/plain";

/** A path, or a file's name and content. */
export type AttachmentSource = string | { readonly name: string; readonly bytes: Uint8Array };

export interface Attachment {
  readonly bytes: Uint8Array;
  readonly mediaType: string;
  readonly filename: string;
}

/** Its cleaned name and media type for the store; of a text file, the text is cleaned as well. */
export function cleanAttachment(file: Attachment, clean: (text: string) => string): Attachment {
  const name = (text: string) => cutChars(clean(text), MAX_NAME_CHARS);
  const text = textOf(file);
  const bytes = text === undefined ? file.bytes : Buffer.from(clean(text));
  return { bytes, mediaType: name(file.mediaType), filename: name(file.filename) };
}

/** The text that stands for a text file in a message, with the file's name; undefined for other files. */
export function attachedText(file: Attachment): string | undefined {
  const text = textOf(file);
  return text === undefined ? undefined : fileText(file.filename, text);
}

const textOf = ({ mediaType, bytes }: Attachment) =>
  mediaType === TEXT ? new TextDecoder().decode(bytes) : undefined;

/** @throws ClientError (usage) if a message's text and its text files are longer than one message may be */
export function requireTextRoom(text: string, attachments: readonly Attachment[]): void {
  const chars = attachments.reduce((sum, file) => sum + (textOf(file)?.length ?? 0), text.length);
  if (chars <= MAX_TEXT_CHARS) return;
  throw usageError(
    `The text and its text files have ${chars} characters; at most ${MAX_TEXT_CHARS} go into one message.`,
    "Put the files into the workspace (--workspace DIR) and name them in the text.",
  );
}

/** Notes for the person, one per line, about files that the model does not accept. */
export function notShown(
  attachments: readonly Attachment[],
  { model, input }: { readonly model: string; readonly input: readonly string[] },
): string[] {
  return attachments
    .filter(({ mediaType }) => mediaType !== TEXT)
    .filter(({ mediaType }) => !input.includes(mediaType.startsWith("image/") ? "image" : "pdf"))
    .map(
      ({ filename, mediaType }) =>
        `${model} does not take ${mediaType}: ${harmlessLine(filename, 80)} is stored, and the model gets a line of text that says so. Choose another model with --model, or set models.${model}.input if it does.`,
    );
}

interface Sources {
  /** Images and PDFs. */
  readonly images?: readonly AttachmentSource[] | undefined;
  /** The same, and text files. */
  readonly files?: readonly AttachmentSource[] | undefined;
}

/** Reads files, recognised by their content. @throws ClientError (usage) for other, missing, too many or too large files */
export async function readAttachments({ images = [], files = [] }: Sources): Promise<Attachment[]> {
  if (images.length + files.length > MAX_FILES)
    throw usageError(
      `There are ${images.length + files.length} files; at most ${MAX_FILES} go with one message.`,
    );
  const all: Attachment[] = [];
  for (const image of images) all.push(await readAttachment("--image", image));
  for (const file of files) all.push(await readAttachment("--file", file));
  return all;
}

async function readAttachment(flag: "--image" | "--file", source: AttachmentSource): Promise<Attachment> {
  if (typeof source !== "string") return attachmentOf(flag, source, source.name);
  const called = `${flag}: ${source}`;
  if (flag === "--image" && !EXTENSIONS.includes(extname(source).toLowerCase()))
    throw usageError(`${called} is not one of ${EXTENSIONS.join(", ")}. A text file goes with --file.`);
  const bytes = await readRegular(source, called).catch((error: unknown) => {
    throw error instanceof ClientError ? error : unreadable(called, error);
  });
  return attachmentOf(flag, { name: basename(source), bytes }, called);
}

/** Reading a pipe would block, and a device has no end. */
async function readRegular(path: string, called: string): Promise<Uint8Array> {
  const stats = await stat(path);
  if (!stats.isFile() && !stats.isDirectory()) throw usageError(`${called} is not a regular file.`);
  if (stats.isFile()) requireSize(called, stats.size);
  return readFile(path);
}

function requireSize(called: string, size: number): void {
  if (size === 0 || size > MAX_IMAGE_BYTES)
    throw usageError(`${called} has ${size} bytes; it must have 1 to ${MAX_IMAGE_BYTES}.`);
}

function attachmentOf(
  flag: "--image" | "--file",
  { name: filename, bytes }: { readonly name: string; readonly bytes: Uint8Array },
  called: string,
): Attachment {
  requireSize(called, bytes.length);
  // The provider would refuse the whole request because of this file.
  const mediaType = detectImageType(bytes) ?? (isPdf(bytes) ? "application/pdf" : undefined);
  if (mediaType !== undefined) return { bytes, mediaType, filename };
  const contents = readText(bytes);
  const text = flag === "--file" ? textOfFile(contents) : undefined;
  if (text !== undefined) return { bytes: Buffer.from(text), mediaType: TEXT, filename };
  throw usageError(
    `${called} is not a PNG, JPEG, GIF, WebP or PDF${flag === "--file" ? ", nor text in UTF-8 or UTF-16," : ""} by its content.`,
    ...(flag === "--file" ? [howElse(contents)] : []),
  );
}

function howElse(contents: FoundText): string {
  const advice = "Put it into the workspace (--workspace DIR) and name it in the text.";
  if (contents.kind !== "guessed" || contents.label === undefined) return advice;
  return `It looks like ${contents.name}: iconv -f ${contents.label} -t UTF-8 makes it UTF-8. Or put it into the workspace (--workspace DIR) and name it in the text.`;
}

/** The text of a file, if its encoding is known for sure. */
function textOfFile(contents: FoundText): string | undefined {
  return contents.kind === "text" && !contents.text.includes("\0") ? cleanText(contents.text) : undefined;
}
