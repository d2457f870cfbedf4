/** Bytes in the format of `git diff --binary`, for `git apply`. Pure. */
import { createHash } from "node:crypto";
import { deflateSync } from "node:zlib";

/** Git's base-85 alphabet. Source: base85.c. */
const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";
const BYTES_PER_LINE = 52;
const NO_BLOB = "0".repeat(40);

/** The two blob names of the `index` line. `git apply` compares them with the current file; undefined = no file. */
export function blobNames(before: Buffer | undefined, after: Buffer | undefined): string {
  return `${blobName(before)}..${blobName(after)}`;
}

function blobName(bytes: Buffer | undefined): string {
  if (bytes === undefined) return NO_BLOB;
  return createHash("sha1").update(`blob ${bytes.length}\0`).update(bytes).digest("hex");
}

/** The body of a patch, in both directions. */
export function binaryPatch(before: Buffer, after: Buffer): string {
  return `GIT binary patch\n${literal(after)}\n${literal(before)}\n`;
}

function literal(bytes: Buffer): string {
  const packed = deflateSync(bytes);
  const lines = [`literal ${bytes.length}\n`];
  for (let at = 0; at < packed.length; at += BYTES_PER_LINE)
    lines.push(line(packed.subarray(at, at + BYTES_PER_LINE)));
  return lines.join("");
}

/** A line's first letter is its number of bytes: A–Z for 1–26, a–z for 27–52. Four bytes become five letters. */
function line(bytes: Buffer): string {
  const count = bytes.length;
  let text = String.fromCharCode(count <= 26 ? 64 + count : 70 + count);
  for (let at = 0; at < count; at += 4) {
    let word = 0;
    for (let next = at; next < at + 4; next += 1) word = word * 256 + (bytes[next] ?? 0);
    let letters = "";
    for (let place = 0; place < 5; place += 1) {
      letters = (ALPHABET[word % 85] ?? "") + letters;
      word = Math.floor(word / 85);
    }
    text += letters;
  }
  return `${text}\n`;
}
