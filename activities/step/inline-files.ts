/** Stores files that came inside a message, as programs other than our client send them, or replaces them by a text that says why not. */
import { type FilePart, type UserPart, fileText } from "../contract/message.ts";
import { blobId, saveBlob, withStoredSize } from "../store/blobs.ts";
import type { Queryable } from "../store/db.ts";
import { imageTypeOf, isPdf } from "../store/media.ts";

/** @returns a reference to the stored blob, the text of a text file, or a text that says why the file was not stored */
export async function storeFile(db: Queryable, part: FilePart): Promise<UserPart> {
  const id = blobId(part);
  if (id !== undefined) {
    const stored = await withStoredSize(db, part);
    return stored ?? notTaken(part, "it names a stored file that does not exist");
  }
  const bytes = bytesOf(part.data);
  if (bytes === undefined) {
    const isLink = /^\w+:\/\//.test(part.data);
    return notTaken(part, isLink ? "links are not fetched" : "its data is not base64");
  }
  if (part.mediaType.startsWith("text/")) {
    const text = new TextDecoder().decode(bytes);
    return { type: "text", text: part.filename === undefined ? text : fileText(part.filename, text) };
  }
  // The declared type does not count: a provider refuses the whole request if an image's bytes are not an image.
  const found = imageTypeOf(bytes) ?? (isPdf(bytes) ? "application/pdf" : undefined);
  if (found === undefined && /^image\/|^application\/pdf$/.test(part.mediaType))
    return notTaken(part, "its content is not a PNG, JPEG, GIF, WebP or PDF");
  return saveBlob(db, bytes, found ?? part.mediaType, part.filename);
}

/** @returns undefined for data that is neither base64 nor a base64 data URL */
function bytesOf(data: string): Uint8Array | undefined {
  const base64 = data.replace(/^data:[^,]{0,300};base64,/, "").replace(/\s+/g, "");
  if (base64 === "" || !/^[A-Za-z0-9+/_-]+={0,2}$/.test(base64)) return undefined;
  return Buffer.from(base64, "base64");
}

function notTaken({ filename, mediaType }: FilePart, why: string): UserPart {
  const name = filename === undefined ? "A file" : `The file ${JSON.stringify(filename)}`;
  return {
    type: "text",
    text: `[${name} (${mediaType}) came with this message and was left out: ${why}. It can be sent with \`longhaul say --file\`, or put in the workspace.]`,
  };
}
