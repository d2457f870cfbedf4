/** Prepares an image for the model: without its metadata, within limits, stored. */
import type { FilePart } from "../contract/message.ts";
import { detectImageType, mediaSize } from "../store/media.ts";
import type { ToolContext } from "./tool.ts";

/** Largest image shown. Source: Anthropic accepts 5 MiB of base64, which are 3.93 MB of bytes; others accept more. */
export const MAX_IMAGE_BYTES = 3_900_000;
/**
 * Limit of the longer side. Source: Anthropic's refusal, "exceed max allowed size: 8000 pixels"; others shrink the
 * image themselves.
 */
const MAX_PIXELS = 8_000;

/** Stores an image without its metadata. @returns the reason if it is not shown */
export async function storeImage(
  bytes: Uint8Array,
  name: string,
  { memory, maskWindow }: Pick<ToolContext, "memory" | "maskWindow">,
): Promise<FilePart | string> {
  const mediaType = detectImageType(bytes);
  if (mediaType === undefined) return `${name} changed while it was read. Try again.`;
  const { width = 0, height = 0 } = mediaSize(bytes, mediaType, () => undefined);
  if (Math.max(width, height) > MAX_PIXELS)
    return `${name} is ${width} × ${height} pixels; at most ${MAX_PIXELS} on a side can be shown. Make a smaller one first, with bash.`;
  // Metadata is text that neither the model nor a mask would see.
  const picture = withoutMetadata(bytes, mediaType);
  if (picture === undefined)
    return `${name} is a damaged image: its parts do not fit together. Make it again, with bash.`;
  const latin = Buffer.from(picture).toString("latin1");
  if (maskWindow(latin, 0, latin.length) !== latin)
    return `${name} is not shown: its bytes contain a secret of this installation.`;
  return memory.saveBlob(picture, mediaType);
}

/** PNG chunks needed for the picture; all others hold text or programs' data. */
const PNG_CHUNKS = "IHDR PLTE IDAT IEND tRNS gAMA cHRM sRGB sBIT bKGD pHYs acTL fcTL fdAT".split(" ");
const WEBP_CHUNKS = ["VP8 ", "VP8L", "VP8X", "ALPH", "ANIM", "ANMF"];
/** Flags in a WebP's first chunk: a profile, EXIF and XMP follow. */
const WEBP_METADATA = 0x20 | 0x08 | 0x04;

/** @returns the picture only; undefined if the bytes are not a well-formed image of that type */
export function withoutMetadata(bytes: Uint8Array, mediaType: string): Uint8Array | undefined {
  const image = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  try {
    const parts = partsOf(image, mediaType);
    return parts && Buffer.concat(parts);
  } catch (error) {
    // A length field points beyond the end.
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

function partsOf(image: Buffer, mediaType: string): Buffer[] | undefined {
  if (mediaType === "image/png") return pngParts(image);
  if (mediaType === "image/jpeg") return jpegParts(image);
  return mediaType === "image/gif" ? gifParts(image) : webpParts(image);
}

function pngParts(image: Buffer): Buffer[] | undefined {
  const parts = [image.subarray(0, 8)];
  for (let at = 8; at < image.length;) {
    const end = at + 12 + image.readUInt32BE(at);
    const type = image.toString("latin1", at + 4, at + 8);
    if (end > image.length) return undefined;
    if (PNG_CHUNKS.includes(type)) parts.push(image.subarray(at, end));
    if (type === "IEND") return parts;
    at = end;
  }
  return undefined;
}

function jpegParts(image: Buffer): Buffer[] | undefined {
  const parts = [image.subarray(0, 2)];
  for (let at = 2; at < image.length;) {
    if (image[at] !== 0xff) return undefined;
    const marker = image.readUInt8(at + 1);
    if (marker === 0xff) at += 1;
    else if (marker === 0xd9) return [...parts, image.subarray(at, at + 2)];
    else {
      const end = at + 2 + image.readUInt16BE(at + 2);
      if (end > image.length) return undefined;
      // Of the application segments, a decoder needs only JFIF's and Adobe's; 0xfe is a comment.
      const isMetadata =
        (marker >= 0xe0 && marker <= 0xef && marker !== 0xe0 && marker !== 0xee) || marker === 0xfe;
      if (!isMetadata) parts.push(image.subarray(at, end));
      at = end;
      if (marker !== 0xda) continue;
      // The coded picture, up to the next marker that is not a restart marker.
      while (at + 1 < image.length && !(image[at] === 0xff && isMarker(image.readUInt8(at + 1)))) at += 1;
      parts.push(image.subarray(end, at));
      if (at + 1 >= image.length) return undefined;
    }
  }
  return undefined;
}

const isMarker = (byte: number): boolean => byte !== 0 && (byte < 0xd0 || byte > 0xd7);

function gifParts(image: Buffer): Buffer[] | undefined {
  const head = 13 + colourTable(image.readUInt8(10));
  const parts = [image.subarray(0, head)];
  for (let at = head; at < image.length;) {
    const kind = image[at];
    if (kind === 0x3b) return [...parts, image.subarray(at, at + 1)];
    let blocks = at + 2;
    if (kind === 0x2c) blocks = at + 11 + colourTable(image.readUInt8(at + 9));
    else if (kind !== 0x21) return undefined;
    let end = blocks;
    while (image.readUInt8(end) !== 0) end += image.readUInt8(end) + 1;
    end += 1;
    const isLoop = image[at + 1] === 0xff && image.toString("latin1", at + 3, at + 14) === "NETSCAPE2.0";
    if (kind === 0x2c || image[at + 1] === 0xf9 || isLoop) parts.push(image.subarray(at, end));
    at = end;
  }
  return undefined;
}

const colourTable = (flags: number): number => ((flags & 0x80) === 0 ? 0 : 3 * 2 ** ((flags & 7) + 1));

function webpParts(image: Buffer): Buffer[] | undefined {
  const chunks: Buffer[] = [];
  const last = Math.min(image.length, image.readUInt32LE(4) + 8);
  for (let at = 12; at + 8 <= last;) {
    const type = image.toString("latin1", at, at + 4);
    const size = image.readUInt32LE(at + 4);
    const end = at + 8 + size + (size % 2);
    if (end > last + 1 || at + 8 + size > image.length) return undefined;
    if (WEBP_CHUNKS.includes(type)) {
      const chunk = Buffer.from(image.subarray(at, Math.min(end, image.length)));
      if (type === "VP8X") chunk.writeUInt8(chunk.readUInt8(8) & ~WEBP_METADATA, 8);
      chunks.push(chunk);
    }
    at = end;
  }
  if (chunks.length === 0) return undefined;
  const head = Buffer.from(image.subarray(0, 12));
  head.writeUInt32LE(4 + chunks.reduce((sum, chunk) => sum + chunk.length, 0), 4);
  return [head, ...chunks];
}
