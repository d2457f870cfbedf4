/**
 * Tar entries as every tar reads them: ustar heads, GNU's long names for what does not fit, a pax record for the part of
 * a second. Names are bytes, which tar-stream's writer cannot give.
 */
export interface TarEntry {
  readonly kind: "file" | "folder" | "link";
  readonly path: Uint8Array;
  readonly mode: number;
  readonly content: Uint8Array;
  /** Seconds since 1970 with a fraction, as text; empty = the present time. */
  readonly mtime: string;
  /** Of a link. */
  readonly target: Uint8Array;
}

const BLOCK = 512;
const NAME_BYTES = 100;
const LONG_NAME = "././@LongLink";

/** The blocks of one entry. */
export function tarEntry(entry: TarEntry): Uint8Array[] {
  const mtime = entry.mtime === "" ? String(Math.floor(Date.now() / 1_000)) : entry.mtime;
  const seconds = mtime.split(".", 1)[0] ?? "";
  const pieces: Uint8Array[] = [];
  if (mtime !== seconds) {
    const record = paxRecord(`mtime=${mtime}\n`);
    pieces.push(head({ name: Buffer.from("pax"), type: "x", size: record.length }), ...padded(record));
  }
  for (const [type, bytes] of [
    ["L", entry.path],
    ["K", entry.target],
  ] as const) {
    if (bytes.length < NAME_BYTES) continue;
    const text = Buffer.concat([bytes, Buffer.from([0])]);
    pieces.push(head({ name: Buffer.from(LONG_NAME), type, size: text.length }), ...padded(text));
  }
  const type = entry.kind === "file" ? "0" : entry.kind === "folder" ? "5" : "2";
  const size = entry.kind === "file" ? entry.content.length : 0;
  pieces.push(
    head({ name: entry.path, type, size, mode: entry.mode, seconds: Number(seconds), target: entry.target }),
  );
  if (entry.kind === "file") pieces.push(...padded(entry.content));
  return pieces;
}

/** What ends an archive. */
export const TAR_END: Uint8Array = Buffer.alloc(2 * BLOCK);

interface Head {
  readonly name: Uint8Array;
  readonly type: string;
  readonly size: number;
  readonly mode?: number;
  readonly seconds?: number;
  readonly target?: Uint8Array;
}

function head({ name, type, size, mode = 0o644, seconds = 0, target = Buffer.alloc(0) }: Head): Uint8Array {
  const block = Buffer.alloc(BLOCK);
  const octal = (value: number, at: number, digits: number): void =>
    void block.write(`${value.toString(8).padStart(digits, "0")}\0`, at, "latin1");
  block.set(name.subarray(0, NAME_BYTES), 0);
  octal(mode, 100, 7);
  octal(0, 108, 7);
  octal(0, 116, 7);
  octal(size, 124, 11);
  octal(Math.max(0, Math.min(seconds, 0o77777777777)), 136, 11);
  block.write("        ", 148, "latin1");
  block.write(type, 156, "latin1");
  block.set(target.subarray(0, NAME_BYTES), 157);
  block.write("ustar  \0", 257, "latin1");
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return block;
}

function padded(bytes: Uint8Array): Uint8Array[] {
  const rest = bytes.length % BLOCK;
  return rest === 0 ? [bytes] : [bytes, Buffer.alloc(BLOCK - rest)];
}

/** A record begins with its own length, its digits included. */
function paxRecord(text: string): Buffer {
  let length = text.length + 2;
  while (`${length} ${text}`.length !== length) length = `${length} ${text}`.length;
  return Buffer.from(`${length} ${text}`, "latin1");
}
