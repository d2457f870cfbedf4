/** Reads and writes the tar packs of checkpoints, in memory. */
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { createGunzip, createGzip } from "node:zlib";
import { extract, pack as createPack, type Header } from "tar-stream";
import { bytesOfText, textOfBytes } from "./path-text.ts";
import {
  assertSafePaths,
  MAX_PACK_BYTES,
  packManifest,
  unpackManifest,
  type ManifestEntry,
} from "./workspace-manifest.ts";

/** Makes the package return names as bytes; missing in its types. */
const AS_BYTES: object = { filenameEncoding: "latin1" };

/** A file of a workspace, outside a sandbox. */
export type WorkspaceFile = {
  /** Relative to the workspace, with `/`. */
  readonly path: string;
  /** Permission bits, such as 0o644. */
  readonly mode: number;
} & (
  | { readonly kind: "file"; readonly bytes: Uint8Array; readonly mtimeMs?: number }
  | { readonly kind: "folder" }
  | { readonly kind: "link"; readonly target: string }
);

/** The two columns of a checkpoint that hold content. */
export interface StoredPack {
  readonly manifest: Uint8Array;
  readonly pack: Uint8Array;
}

/** Bytes that may be too many for memory, read piece by piece. */
export interface StoredBytes {
  readonly byteLength: number;
  /** To how many bytes they may unpack; default: what a save in Postgres may have. */
  readonly mostBytes?: number;
  pieces(): Iterable<Uint8Array> | AsyncIterable<Uint8Array>;
}

/** A checkpoint and those it builds on. */
export interface StoredChain {
  /** The manifest of the checkpoint itself. */
  readonly manifest: Uint8Array;
  /** Newest first. */
  readonly packs: Iterable<StoredBytes> | AsyncIterable<StoredBytes>;
}

/** A save packs again up to three times when files are renamed during it (agent/workspace/save.py): a larger pack cannot be genuine. */
const MAX_UNPACKED_BYTES = 3 * MAX_PACK_BYTES;

/**
 * A whole checkpoint of these files, for a workspace that is copied in (`--workspace DIR`). Files without a time get the
 * current one.
 * @throws RangeError for a path that leaves the workspace, or files beyond 256 MiB together.
 */
export async function packWorkspace(files: readonly WorkspaceFile[]): Promise<StoredPack> {
  const nowMs = Date.now();
  const entries = files.map((file): ManifestEntry => {
    const common = { path: file.path, mode: file.mode & 0o7777, size: 0, mtime: "", ctime: "", target: "" };
    switch (file.kind) {
      case "file":
        return {
          ...common,
          kind: "file",
          size: file.bytes.byteLength,
          mtime: ((file.mtimeMs ?? nowMs) / 1000).toFixed(9) + "0",
        };
      case "folder":
        return { ...common, kind: "folder" };
      case "link":
        return { ...common, kind: "link", target: file.target };
    }
  });
  assertSafePaths(entries);
  const total = entries.reduce((sum, entry) => sum + entry.size, 0);
  if (total > MAX_PACK_BYTES) {
    throw new RangeError(
      `The files are ${Math.ceil(total / 2 ** 20)} MiB together; a workspace may have at most ${MAX_PACK_BYTES / 2 ** 20}.` +
        " Leave out what can be built or downloaded again.",
    );
  }
  return { manifest: packManifest(entries), pack: await packFiles(files) };
}

/** Size of the pieces to gzip. Each costs a thread switch, which for small files would be most of the work. */
const PIECE_BYTES = 1024 * 1024;

async function* inPieces(source: AsyncIterable<unknown>): AsyncGenerator<Uint8Array> {
  let parts: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of source) {
    const part = chunk as Uint8Array;
    parts.push(part);
    size += part.byteLength;
    if (size < PIECE_BYTES) continue;
    yield Buffer.concat(parts);
    [parts, size] = [[], 0];
  }
  yield Buffer.concat(parts);
}

/** Only the content of files; the manifest has everything else. */
async function packFiles(files: readonly WorkspaceFile[]): Promise<Uint8Array> {
  const tar = createPack();
  const packed = buffer(Readable.from(inPieces(tar), { objectMode: false }).pipe(createGzip({ level: 3 })));
  // The promise may reject before it is awaited.
  packed.catch(() => undefined);
  for (const file of files) {
    if (file.kind !== "file") continue;
    const { buffer: bytes, byteOffset, byteLength } = file.bytes;
    // The package writes names as UTF-8, so any other name goes before its file.
    const isText = file.path.isWellFormed();
    if (!isText) tar.push(nameBefore(bytesOfText(file.path)));
    const header = { name: isText ? file.path : "named-before", mode: file.mode & 0o7777 };
    // One after the other: if entries wait, the package moves its whole queue for each of them.
    await new Promise<void>((resolve, reject) => {
      tar.entry(header, Buffer.from(bytes, byteOffset, byteLength), (error) =>
        error ? reject(error) : resolve(),
      );
    });
  }
  tar.finalize();
  return packed;
}

/**
 * The files of a checkpoint: for each path of its manifest the newest content. A path that no pack has (it was removed while
 * it was saved) is skipped.
 * @throws RangeError when a pack holds a path that leaves the workspace, or more than was ever saved.
 */
export async function readChain(
  chain: StoredChain,
): Promise<{ readonly entries: ManifestEntry[]; readonly bytes: ReadonlyMap<string, Uint8Array> }> {
  const entries = unpackManifest(chain.manifest);
  const files = entries.flatMap((entry) => (entry.kind === "file" ? [entry.path] : []));
  const bytes = await readFiles(chain.packs, new Set(files));
  return { entries: entries.filter((entry) => entry.kind !== "file" || bytes.has(entry.path)), bytes };
}

/**
 * The newest content of some files. @param packs newest first; only files in the manifest may be requested
 * @throws RangeError as `readChain`
 */
export async function readFiles(
  packs: StoredChain["packs"],
  paths: ReadonlySet<string>,
): Promise<Map<string, Uint8Array>> {
  const missing = new Set(paths);
  const bytes = new Map<string, Uint8Array>();
  for await (const pack of packs) {
    if (missing.size === 0) break;
    // Within one pack the last entry of a path counts, as in tar itself.
    const unpacked = await unpack(pack, missing);
    for (const [path, content] of unpacked) {
      bytes.set(path, content);
      missing.delete(path);
    }
  }
  return bytes;
}

async function unpack(pack: StoredBytes, paths: ReadonlySet<string>): Promise<Map<string, Uint8Array>> {
  const contents = new Map<string, Uint8Array>();
  // Names in headers are bytes; those of a pax record are UTF-8 by definition.
  const tar = extract(AS_BYTES);
  const source = Readable.from(pack.pieces(), { objectMode: false });
  const gunzip = source.pipe(createGunzip());
  source.on("error", (error) => tar.destroy(error));
  // Errors must reach the loop below, or it would wait forever.
  gunzip.on("error", (error) => tar.destroy(error));
  gunzip.pipe(tar);
  let total = 0;
  for await (const entry of tar) {
    const path = nameOf(entry.header).replace(/^\.\//, "").replace(/\/$/, "");
    assertSafeName(path);
    total += entry.header.size ?? 0;
    if (total > (pack.mostBytes ?? MAX_UNPACKED_BYTES))
      throw new RangeError("The pack holds more than was ever saved: refused.");
    if (entry.header.type === "file" && paths.has(path)) {
      const pieces: Buffer[] = [];
      for await (const piece of entry) pieces.push(piece as Buffer);
      contents.set(path, Buffer.concat(pieces));
    } else {
      entry.resume();
    }
  }
  return contents;
}

const BLOCK_BYTES = 512;

/** GNU tar's entry for a long name: its content is the name of the next entry. */
function nameBefore(name: Buffer): Buffer {
  const head = Buffer.alloc(BLOCK_BYTES);
  const octal = (value: number, digits: number) => value.toString(8).padStart(digits, "0");
  head.write("././@LongLink", 0);
  for (const at of [100, 108, 116]) head.write(octal(0, 7), at);
  head.write(octal(name.byteLength + 1, 11), 124);
  head.write(octal(0, 11), 136);
  // The checksum counts its own place as blanks.
  head.write("        L", 148);
  head.write("ustar  ", 257);
  head.write(
    `${octal(
      head.reduce((sum, byte) => sum + byte, 0),
      6,
    )}\0 `,
    148,
  );
  const padding = BLOCK_BYTES - (name.byteLength % BLOCK_BYTES);
  return Buffer.concat([head, name, Buffer.alloc(padding)]);
}

function nameOf({ name, pax }: Header): string {
  const isText = typeof pax === "object" && pax !== null && "path" in pax;
  return isText ? name : textOfBytes(Buffer.from(name, "latin1"));
}

function assertSafeName(path: string): void {
  assertSafePaths([{ kind: "file", path }]);
}
