/**
 * Converts paths between text and their bytes on disk. A name need not be UTF-8: in text, an invalid byte becomes a lone
 * surrogate (0x80 is U+DC80), which well-formed text never has, so different names stay different.
 */
import { isUtf8 } from "node:buffer";

const ESCAPE = 0xdc00;

/** @returns text; not well-formed if the bytes are not valid UTF-8 */
export function textOfBytes(bytes: Uint8Array): string {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (isUtf8(buffer)) return buffer.toString("utf8");
  let text = "";
  let validFrom = 0;
  for (let at = 0; at < buffer.length;) {
    const length = characterLength(buffer, at);
    at += length || 1;
    if (length > 0) continue;
    text += buffer.toString("utf8", validFrom, at - 1) + String.fromCharCode(ESCAPE + (buffer[at - 1] ?? 0));
    validFrom = at;
  }
  return text + buffer.toString("utf8", validFrom);
}

/** The inverse of `textOfBytes`. */
export function bytesOfText(text: string): Buffer {
  if (text.isWellFormed()) return Buffer.from(text, "utf8");
  const bytes = Buffer.alloc(3 * text.length);
  let size = 0;
  let from = 0;
  // With the `u` flag, only lone surrogates match.
  for (const { index } of text.matchAll(/[\uDC80-\uDCFF]/gu)) {
    if (index > from) size += bytes.write(text.slice(from, index), size);
    bytes[size++] = text.charCodeAt(index) - ESCAPE;
    from = index + 1;
  }
  size += bytes.write(text.slice(from), size);
  return bytes.subarray(0, size);
}

/** Bytes of the UTF-8 character that begins at `at`; 0 if none does. */
function characterLength(buffer: Buffer, at: number): number {
  // A multi-byte character's first byte has as many leading ones as the character has bytes; 10xxxxxx is never the first.
  const ones = Math.clz32(~((buffer[at] ?? 0) << 24));
  if (ones === 0) return 1;
  const isOne = ones > 1 && isContinuation(buffer[at + 1]) && isUtf8(buffer.subarray(at, at + ones));
  return isOne ? ones : 0;
}

const isContinuation = (byte: number | undefined) => byte !== undefined && (byte & 0xc0) === 0x80;
