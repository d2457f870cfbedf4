/**
 * Converts paths between text and their bytes on disk. A name need not be UTF-8: in text, a byte of no valid character is a lone
 * surrogate (0x80 is U+DC80), which well-formed text never has, so different names stay different.
 */
import { isUtf8 } from "node:buffer";

const ESCAPE = 0xdc00;

/** @returns text; not well-formed where the bytes are no UTF-8 */
export function textOfBytes(bytes: Uint8Array): string {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (isUtf8(buffer)) return buffer.toString("utf8");
  let text = "";
  for (let at = 0; at < buffer.length;) {
    const length = characterLength(buffer, at);
    text +=
      length === 0
        ? String.fromCharCode(ESCAPE + (buffer[at] ?? 0))
        : buffer.toString("utf8", at, at + length);
    at += length || 1;
  }
  return text;
}

/** The inverse of `textOfBytes`. */
export function bytesOfText(text: string): Buffer {
  if (text.isWellFormed()) return Buffer.from(text, "utf8");
  // With the `u` flag, only lone surrogates match.
  const parts = text.split(/([\uDC80-\uDCFF])/u);
  return Buffer.concat(
    parts.map((part, at) =>
      at % 2 === 1 ? Buffer.from([part.charCodeAt(0) - ESCAPE]) : Buffer.from(part, "utf8"),
    ),
  );
}

/** Bytes of the UTF-8 character that begins at `at`; 0 where none does. */
function characterLength(buffer: Buffer, at: number): number {
  for (let length = 1; length <= 4 && at + length <= buffer.length; length += 1)
    if (isUtf8(buffer.subarray(at, at + length))) return length;
  return 0;
}
