/** Files in and out of the tar packs that checkpoints are made of. Nothing here touches a disk. */
import { Readable } from "node:stream";
import { promisify } from "node:util";
import { createGunzip, gzip } from "node:zlib";
import { extract, type Header } from "tar-stream";
import { bytesOfText, textOfBytes } from "./path-text.ts";
import { TAR_END, tarEntry } from "./tar-writer.ts";
import {
  assertSafePaths,
  MAX_PACK_BYTES,
  packManifest,
  unpackManifest,
  type ManifestEntry,
} from "./workspace-manifest.ts";

const gzipped = promisify(gzip);

/** For names as bytes; missing in the package's types. */
const AS_BYTES: object = { filenameEncoding: "latin1" };

/** A file of a workspace, outside of any box. */
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

/** Files with the head of a tar block each; beyond it a pack is not what we wrote. */
const MAX_UNPACKED_BYTES = 2 * MAX_PACK_BYTES;

/**
 * A whole checkpoint of these files, for a workspace that is put in from outside (`--workspace DIR`).
 * Files without a time get the present one.
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
      `The files have ${Math.ceil(total / 2 ** 20)} MiB together; a workspace may be put in with ${MAX_PACK_BYTES / 2 ** 20}.` +
        " Leave out what can be built or fetched again.",
    );
  }
  const bytes = new Map(files.flatMap((file) => (file.kind === "file" ? [[file.path, file.bytes]] : [])));
  return {
    manifest: packManifest(entries),
    pack: await packEntries(entries, (path) => bytes.get(path)),
  };
}

/** A tar with these entries in this order; a file without bytes is left out. */
export function tarOf(
  entries: readonly ManifestEntry[],
  bytesOf: (path: string) => Uint8Array | undefined,
): Uint8Array {
  const pieces: Uint8Array[] = [];
  for (const entry of entries) {
    const content = entry.kind === "file" ? bytesOf(entry.path) : new Uint8Array(0);
    if (content === undefined) continue;
    const [path, target] = [bytesOfText(entry.path), bytesOfText(entry.target)];
    pieces.push(
      ...tarEntry({ kind: entry.kind, path, mode: entry.mode, content, mtime: entry.mtime, target }),
    );
  }
  return Buffer.concat([...pieces, TAR_END]);
}

/** The same as a pack is stored. */
export function packEntries(
  entries: readonly ManifestEntry[],
  bytesOf: (path: string) => Uint8Array | undefined,
): Promise<Uint8Array> {
  return gzipped(tarOf(entries, bytesOf), { level: 3 });
}

/**
 * The files after a chain of checkpoints, oldest first: of each path of the last manifest the newest content.
 * A path that no pack has (it vanished while it was saved) is left out.
 * @throws RangeError when a pack holds a path that leaves the workspace, or more than was ever saved.
 */
export async function readChain(
  chain: readonly StoredPack[],
): Promise<{ readonly entries: ManifestEntry[]; readonly bytes: ReadonlyMap<string, Uint8Array> }> {
  const newest = chain.at(-1);
  if (newest === undefined) return { entries: [], bytes: new Map() };
  const entries = unpackManifest(newest.manifest);
  const wanted = new Set(entries.flatMap((entry) => (entry.kind === "file" ? [entry.path] : [])));
  const bytes = new Map<string, Uint8Array>();
  for (const { pack } of chain.toReversed()) {
    if (wanted.size === 0) break;
    // Within one pack the last entry of a path counts, as with tar itself.
    const found = await unpack(pack, wanted);
    for (const [path, content] of found) {
      bytes.set(path, content);
      wanted.delete(path);
    }
  }
  return { entries: entries.filter((entry) => entry.kind !== "file" || bytes.has(entry.path)), bytes };
}

/** Entries of a tar as it came from a box, and of archives behind one another. @throws RangeError as `readChain` */
export async function* readTar(
  archive: Uint8Array,
): AsyncGenerator<{ readonly entry: ManifestEntry; readonly bytes: Uint8Array }> {
  const tar = extract(AS_BYTES);
  const read = new Map<string, Uint8Array>();
  Readable.from([Buffer.from(archive.buffer, archive.byteOffset, archive.byteLength)]).pipe(tar);
  for await (const part of tar) {
    const path = nameOf(part.header).replace(/^\.\//, "").replace(/\/$/, "");
    const kind = KINDS[part.header.type ?? ""];
    const pieces: Buffer[] = [];
    for await (const piece of part) pieces.push(piece as Buffer);
    if (kind === undefined || path === "" || path === ".") continue;
    assertSafeName(path);
    const linked = textOfBytes(Buffer.from(part.header.linkname ?? "", "latin1"));
    // A further name of a file that came before.
    const isHardLink = part.header.type === "link";
    const bytes = isHardLink
      ? (read.get(linked.replace(/^\.\//, "")) ?? Buffer.alloc(0))
      : Buffer.concat(pieces);
    if (kind === "file") read.set(path, bytes);
    const mtime = kind === "file" ? String((part.header.mtime?.getTime() ?? 0) / 1_000) : "";
    const target = kind === "link" ? linked : "";
    const mode = (part.header.mode ?? 0) & 0o7777;
    yield { entry: { kind, path, mode, size: bytes.length, mtime, ctime: "", target }, bytes };
  }
}

const KINDS: Readonly<Record<string, ManifestEntry["kind"] | undefined>> = {
  file: "file",
  link: "file",
  "contiguous-file": "file",
  directory: "folder",
  symlink: "link",
};

/** Paths that a pack holds. @throws RangeError as `readChain` */
export async function packedPaths(pack: Uint8Array): Promise<ReadonlySet<string>> {
  const paths = new Set<string>();
  await unpack(pack, new Set(), (path) => paths.add(path));
  return paths;
}

async function unpack(
  pack: Uint8Array,
  wanted: ReadonlySet<string>,
  onPath: (path: string) => void = () => undefined,
): Promise<Map<string, Uint8Array>> {
  const found = new Map<string, Uint8Array>();
  // Names in heads are bytes; those of a pax record are UTF-8 by its rules.
  const tar = extract(AS_BYTES);
  const source = Readable.from([Buffer.from(pack.buffer, pack.byteOffset, pack.byteLength)]);
  const gunzip = source.pipe(createGunzip());
  // Errors must reach the loop below: a stream that breaks alone would leave it waiting.
  gunzip.on("error", (error) => tar.destroy(error));
  gunzip.pipe(tar);
  let total = 0;
  for await (const entry of tar) {
    const path = nameOf(entry.header).replace(/^\.\//, "").replace(/\/$/, "");
    assertSafeName(path);
    onPath(path);
    total += entry.header.size ?? 0;
    if (total > MAX_UNPACKED_BYTES) throw new RangeError("The pack holds more than was ever saved: refused.");
    if (entry.header.type === "file" && wanted.has(path)) {
      const pieces: Buffer[] = [];
      for await (const piece of entry) pieces.push(piece as Buffer);
      found.set(path, Buffer.concat(pieces));
    } else {
      entry.resume();
    }
  }
  return found;
}

function nameOf({ name, pax }: Header): string {
  const isText = typeof pax === "object" && pax !== null && "path" in pax;
  return isText ? name : textOfBytes(Buffer.from(name, "latin1"));
}

function assertSafeName(path: string): void {
  assertSafePaths([{ kind: "file", path, mode: 0, size: 0, mtime: "", ctime: "", target: "" }]);
}
