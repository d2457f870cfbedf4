/** What a file's bytes say of it: its media type, the size of a picture, the page count of a PDF. */

const latin = (bytes: Uint8Array, from: number, to: number): string =>
  String.fromCharCode(...bytes.subarray(from, to));

/** Media type of an image from its first bytes, whatever its name; undefined for a type that models do not accept. */
export function detectImageType(bytes: Uint8Array): string | undefined {
  if (latin(bytes, 0, 8) === "\u0089PNG\r\n\u001a\n") return "image/png";
  if (latin(bytes, 0, 3) === "\u00ff\u00d8\u00ff") return "image/jpeg";
  if (latin(bytes, 0, 6) === "GIF87a" || latin(bytes, 0, 6) === "GIF89a") return "image/gif";
  if (latin(bytes, 0, 4) === "RIFF" && latin(bytes, 8, 12) === "WEBP") return "image/webp";
  return undefined;
}

export function isPdf(bytes: Uint8Array): boolean {
  return latin(bytes, 0, 5) === "%PDF-";
}

/** The properties of a file that determine its tokens; absent if the bytes do not show them. */
export interface MediaSize {
  readonly width?: number;
  readonly height?: number;
  readonly pages?: number;
}

/** Size limit of a PDF's object stream, which holds some hundred small dictionaries. */
export const MAX_STREAM_BYTES = 8 * 1024 * 1024;
/** Size limit of all object streams of a PDF: small ones can hold a thousand times their size. Chosen: some 0.2 s of work. */
const MAX_INFLATED_BYTES = 8 * MAX_STREAM_BYTES;

/** @param inflate decompresses zlib data to at most `MAX_STREAM_BYTES`: newer PDFs compress their page list */
export function mediaSize(
  bytes: Uint8Array,
  mediaType: string,
  inflate: (compressed: Uint8Array) => Uint8Array | undefined,
): MediaSize {
  if (mediaType === "application/pdf") {
    const pages = pagesOf(bytes) + compressedPages(bytes, inflate);
    return pages > 0 ? { pages } : {};
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  try {
    const [width, height] = SIZES[mediaType]?.(view) ?? [0, 0];
    return width > 0 && height > 0 ? { width, height } : {};
  } catch {
    // Truncated before its size: a provider will refuse the file, or report its tokens.
    return {};
  }
}

type Size = readonly [width: number, height: number];

const SIZES: Readonly<Record<string, (view: DataView) => Size>> = {
  // The header chunk comes first. Source: PNG specification, 11.2.1.
  "image/png": (view) => [view.getUint32(16), view.getUint32(20)],
  "image/gif": (view) => [view.getUint16(6, true), view.getUint16(8, true)],
  "image/jpeg": jpegSize,
  "image/webp": webpSize,
};

/** The first frame header (SOF0 to SOF15, but not the tables DHT, JPG and DAC). Source: ITU T.81, table B.1. */
function jpegSize(view: DataView): Size {
  for (let at = 2; ; at += 2 + view.getUint16(at + 2)) {
    while (view.getUint16(at) === 0xff_ff) at += 1;
    const marker = view.getUint16(at);
    const isFrame = marker >= 0xff_c0 && marker <= 0xff_cf && ![0xff_c4, 0xff_c8, 0xff_cc].includes(marker);
    if (isFrame) return [view.getUint16(at + 7), view.getUint16(at + 5)];
    if (marker < 0xff_c0) return [0, 0];
  }
}

/** Lossy, lossless and extended files store the size in three different places. Source: RFC 9649, 2.5 to 2.7. */
function webpSize(view: DataView): Size {
  const kind = view.getUint8(15);
  if (kind === 0x58) return [1 + uint24(view, 24), 1 + uint24(view, 27)];
  if (kind === 0x4c) {
    const bits = view.getUint32(21, true);
    return [1 + (bits & 0x3f_ff), 1 + ((bits >> 14) & 0x3f_ff)];
  }
  return [view.getUint16(26, true) & 0x3f_ff, view.getUint16(28, true) & 0x3f_ff];
}

function uint24(view: DataView, at: number): number {
  return view.getUint16(at, true) + view.getUint8(at + 2) * 65_536;
}

/** Counts dictionaries with `/Type /Page`. */
function pagesOf(bytes: Uint8Array): number {
  let pages = 0;
  for (let at = find(bytes, "/Type", 0); at >= 0; at = find(bytes, "/Type", at)) {
    at += 5;
    while (isBlank(bytes[at])) at += 1;
    const isPage = startsWith(bytes, "/Page", at) && !isLetter(bytes[at + 5]);
    if (isPage) pages += 1;
  }
  return pages;
}

/** Counts the pages in object streams. Source: ISO 32000-1, 7.5.7. */
function compressedPages(
  bytes: Uint8Array,
  inflate: (compressed: Uint8Array) => Uint8Array | undefined,
): number {
  let pages = 0;
  let inflated = 0;
  for (let at = find(bytes, "/ObjStm", 0); at >= 0; at = find(bytes, "/ObjStm", at)) {
    const stream = find(bytes, "stream", at);
    if (stream < 0 || inflated >= MAX_INFLATED_BYTES) break;
    // Continue behind `stream`: otherwise several names before one stream would each inflate it again.
    at = stream + 6;
    while (bytes[at] === 13 || bytes[at] === 10) at += 1;
    const inside = inflate(bytes.subarray(at));
    if (inside !== undefined) pages += pagesOf(inside);
    inflated += inside?.length ?? MAX_STREAM_BYTES;
  }
  return pages;
}

function find(bytes: Uint8Array, text: string, from: number): number {
  const first = text.charCodeAt(0);
  for (let at = bytes.indexOf(first, from); at >= 0; at = bytes.indexOf(first, at + 1))
    if (startsWith(bytes, text, at)) return at;
  return -1;
}

function startsWith(bytes: Uint8Array, text: string, at: number): boolean {
  for (let index = 0; index < text.length; index += 1)
    if (bytes[at + index] !== text.charCodeAt(index)) return false;
  return true;
}

const isBlank = (byte: number | undefined) => byte !== undefined && byte <= 32;
const isLetter = (byte: number | undefined) => byte !== undefined && byte >= 65 && byte <= 122;
