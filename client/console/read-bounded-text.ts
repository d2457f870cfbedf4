/** Reads a text file of this machine, in bounded memory and time: a link of a cloned repository may lead to /dev/zero. */
import { closeSync, fstatSync, openSync, readSync, statSync } from "node:fs";

/** Of a file with settings. Chosen: the largest known have some 100 KB. */
const MAX_BYTES = 8 * 2 ** 20;
const PIECE_BYTES = 64 * 1024;

/**
 * @param limits.pipes whether it may be a pipe, such as of `--config <(…)`: only where the person named it, because reading waits
 * @throws Error with a code as of the file system, for `unreadable`: EFBIG for more than `maxBytes`, ENOTSUP for no regular file
 */
export function readBoundedText(
  path: string,
  { maxBytes = MAX_BYTES, pipes = false }: { readonly maxBytes?: number; readonly pipes?: boolean } = {},
): string {
  // Before it is opened, which waits for a pipe's writer.
  if (!statSync(path).isFIFO() || pipes) {
    const file = openSync(path, "r");
    try {
      const stats = fstatSync(file);
      if (stats.isDirectory()) throw failure("EISDIR", path);
      if (stats.isFile() || pipes) return readAll(file, path, maxBytes);
    } finally {
      closeSync(file);
    }
  }
  throw failure("ENOTSUP", path);
}

function readAll(file: number, path: string, maxBytes: number): string {
  const pieces: Buffer[] = [];
  for (let bytes = 0; ;) {
    const piece = Buffer.allocUnsafe(PIECE_BYTES);
    const read = readSync(file, piece);
    bytes += read;
    if (bytes > maxBytes) throw failure("EFBIG", path);
    if (read === 0) return Buffer.concat(pieces).toString("utf8");
    pieces.push(piece.subarray(0, read));
  }
}

const failure = (code: string, path: string): Error => Object.assign(new Error(`${code}: ${path}`), { code });
