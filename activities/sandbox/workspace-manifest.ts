/** The list of a workspace's files and what changed between two lists. Pure: no clock, no I/O but gzip in memory. */
import { gunzipSync, gzipSync } from "node:zlib";

/** One path of the workspace. Paths are relative to it, with `/`, and well-formed text. */
export interface ManifestEntry {
  readonly kind: "file" | "folder" | "link";
  readonly path: string;
  /** Permission bits, such as 0o644. */
  readonly mode: number;
  /** Of a file, in bytes; 0 for the others. */
  readonly size: number;
  /** Of a file: seconds since 1970 with nanoseconds, as text, because a number would lose the end. Else empty. */
  readonly mtime: string;
  /** Of a link: where it points, as it was written. */
  readonly target: string;
}

export interface Skipped {
  readonly path: string;
  readonly bytes: number;
  readonly reason: "too-large" | "workspace-too-large" | "name-not-text" | "not-readable";
}

/** Folders that a command brings back (`npm ci`, `pip install`): never saved, at any depth. Not `target`, `build` or
 * `dist`: these names are used for sources too, and a lost source is worse than a large row. */
export const REBUILT_FOLDERS: readonly string[] = ["node_modules", ".venv", "__pycache__"];

/** Larger files are not saved; the result names them. Source: requirement of 64 MB. */
export const MAX_FILE_BYTES = 64 * 1024 * 1024;

/** What a checkpoint may hold of files: beyond it the largest stay out. Bounds the worker's memory. */
export const MAX_PACK_BYTES = 256 * 1024 * 1024;

/** What `find` prints for one path: two NUL-terminated fields, so that any name is safe. */
export const FIND_FORMAT = "%y %m %s %T@ %P\\0%l\\0";

const KINDS: Readonly<Record<string, ManifestEntry["kind"]>> = { f: "file", d: "folder", l: "link" };
const LETTERS = { file: "f", folder: "d", link: "l" } as const;

/**
 * Reads `find`'s list. Sockets, pipes and devices are no files and stay out; so do names that are no UTF-8 and files
 * beyond the limits, both named in `skipped`.
 * @returns entries in path order
 */
export function parseListing(bytes: Uint8Array): { entries: ManifestEntry[]; skipped: Skipped[] } {
  const skipped: Skipped[] = [];
  const entries: ManifestEntry[] = [];
  for (const entry of records(bytes)) {
    const skip = (reason: Skipped["reason"]) => skipped.push({ path: entry.path, bytes: entry.size, reason });
    // A replacement character is how bytes that are no UTF-8 arrive: the tar could not carry them faithfully either.
    if (entry.path.includes("\uFFFD") || entry.target.includes("\uFFFD")) skip("name-not-text");
    else if (entry.size > MAX_FILE_BYTES) skip("too-large");
    else entries.push(entry);
  }
  return { entries: entries.sort(byPath), skipped };
}

/** Leaves out the largest of `entries` until the rest is within `maxBytes`. */
export function withinBytes(
  entries: readonly ManifestEntry[],
  maxBytes: number,
): { kept: ManifestEntry[]; skipped: Skipped[] } {
  let total = entries.reduce((sum, entry) => sum + entry.size, 0);
  if (total <= maxBytes) return { kept: [...entries], skipped: [] };
  const skipped: Skipped[] = [];
  const dropped = new Set<string>();
  for (const entry of [...entries].sort((a, b) => b.size - a.size)) {
    if (total <= maxBytes) break;
    total -= entry.size;
    dropped.add(entry.path);
    skipped.push({ path: entry.path, bytes: entry.size, reason: "workspace-too-large" });
  }
  return { kept: entries.filter((entry) => !dropped.has(entry.path)), skipped };
}

/** What `next` has that `previous` has not in the same form, and which paths are gone. */
export function compareManifests(
  previous: readonly ManifestEntry[],
  next: readonly ManifestEntry[],
): { changed: ManifestEntry[]; removed: ManifestEntry[] } {
  const before = new Map(previous.map((entry) => [entry.path, line(entry)]));
  const after = new Set(next.map((entry) => entry.path));
  return {
    changed: next.filter((entry) => before.get(entry.path) !== line(entry)),
    removed: previous.filter((entry) => !after.has(entry.path)),
  };
}

/** The stored form: gzip of `find`'s own format, in path order. */
export function packManifest(entries: readonly ManifestEntry[]): Uint8Array {
  return gzipSync(Buffer.from([...entries].sort(byPath).map(line).join("")), { level: 3 });
}

/** @throws RangeError when a path or the size is not believable. */
export function unpackManifest(bytes: Uint8Array): ManifestEntry[] {
  const entries = [...records(gunzipSync(bytes, { maxOutputLength: MAX_PACK_BYTES }))];
  assertSafePaths(entries);
  return entries;
}

/**
 * Refuses what could lead out of the workspace: absolute paths, `..`, and anything below a link or a file.
 * @throws RangeError naming the path
 */
export function assertSafePaths(entries: readonly ManifestEntry[]): void {
  const kinds = new Map(entries.map((entry) => [entry.path, entry.kind]));
  for (const { path } of entries) {
    const parts = path.split("/");
    if (parts.some((part) => part === "" || part === "." || part === "..") || path.includes("\0")) {
      throw new RangeError(`The path ${JSON.stringify(path)} does not stay in the workspace: refused.`);
    }
    for (let depth = 1; depth < parts.length; depth++) {
      const parent = kinds.get(parts.slice(0, depth).join("/"));
      if (parent === undefined || parent === "folder") continue;
      throw new RangeError(`The path ${JSON.stringify(path)} lies below a ${parent}: refused.`);
    }
  }
}

function* records(bytes: Uint8Array): Generator<ManifestEntry> {
  const fields = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8").split("\0");
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const match = /^(\S+) ([0-7]+) (\d+) (\S*) ([^]+)$/.exec(fields[at] ?? "");
    const kind = KINDS[match?.[1] ?? ""];
    if (match === null || kind === undefined) continue;
    const [, , mode = "", size = "", mtime = "", path = ""] = match;
    const isFile = kind === "file";
    yield {
      kind,
      path,
      mode: Number.parseInt(mode, 8),
      size: isFile ? Number(size) : 0,
      // A folder's time changes with every file in it, and a link's says nothing: only a file's counts as a change.
      mtime: isFile ? mtime : "",
      target: fields[at + 1] ?? "",
    };
  }
}

// A link's mode is always 777 on Linux, but not on every client that packs one.
function line({ kind, mode, size, mtime, path, target }: ManifestEntry): string {
  return `${LETTERS[kind]} ${(kind === "link" ? 0o777 : mode).toString(8)} ${size} ${mtime} ${path}\0${target}\0`;
}

function byPath(a: ManifestEntry, b: ManifestEntry): number {
  return a.path < b.path ? -1 : a.path > b.path ? 1 : 0;
}
