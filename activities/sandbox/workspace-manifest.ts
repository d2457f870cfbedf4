/** The list of a workspace's files and what changed between two lists. Pure: no clock, no I/O but gzip in memory. */
import { isUtf8 } from "node:buffer";
import { gunzipSync, gzipSync } from "node:zlib";
import { bytesOfText, textOfBytes } from "./path-text.ts";

/** One path of the workspace. Paths are relative to it, with `/`; text as `path-text.ts` makes it of any name. */
export interface ManifestEntry {
  readonly kind: "file" | "folder" | "link";
  readonly path: string;
  /** Permission bits, such as 0o644. */
  readonly mode: number;
  /** Of a file, in bytes; 0 for the others. */
  readonly size: number;
  /** Of a file: seconds since 1970 with nanoseconds, as text, because a number would lose the end. Else empty. */
  readonly mtime: string;
  /**
   * Of a file: when it was last changed in whatever way, which no program can set back; or a hash of its content. Empty =
   * not known: then size and `mtime` tell. `?` = it may have changed since: it counts as changed.
   */
  readonly ctime: string;
  /** Of a link: where it points, as it was written. */
  readonly target: string;
}

export interface Skipped {
  readonly path: string;
  readonly bytes: number;
  readonly reason: "too-large" | "workspace-too-large" | "not-readable";
}

/** Folders that a command brings back (`npm ci`, `pip install`): never saved, at any depth. Not `target`, `build` or
 * `dist`: these names are used for sources too, and a lost source is worse than a large row. */
export const REBUILT_FOLDERS: readonly string[] = ["node_modules", ".venv", "__pycache__"];

/** Larger files are not saved; the result names them. Source: requirement of 64 MB. */
export const MAX_FILE_BYTES = 64 * 1024 * 1024;

/** What a checkpoint may hold of files: beyond it the largest stay out. Bounds the worker's memory. */
export const MAX_PACK_BYTES = 256 * 1024 * 1024;

/** What `find` prints for one path: two NUL-terminated fields, so that any name is safe. */
export const FIND_FORMAT = "%y %m %s %T@/%C@ %P\\0%l\\0";

const KINDS: Readonly<Record<string, ManifestEntry["kind"]>> = { f: "file", d: "folder", l: "link" };
const LETTERS = { file: "f", folder: "d", link: "l" } as const;

/**
 * Reads `find`'s list. Sockets, pipes and devices are no files and stay out; so do files beyond the limit, named in
 * `skipped`.
 * @returns entries in path order
 */
export function parseListing(bytes: Uint8Array): { entries: ManifestEntry[]; skipped: Skipped[] } {
  const skipped: Skipped[] = [];
  const entries: ManifestEntry[] = [];
  for (const entry of records(bytes)) {
    if (entry.size > MAX_FILE_BYTES)
      skipped.push({ path: entry.path, bytes: entry.size, reason: "too-large" });
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
  const before = new Map(previous.map((entry) => [entry.path, entry]));
  const after = new Set(next.map((entry) => entry.path));
  return {
    changed: next.filter((entry) => !isSame(before.get(entry.path), entry)),
    removed: previous.filter((entry) => !after.has(entry.path)),
  };
}

function isSame(a: ManifestEntry | undefined, b: ManifestEntry): boolean {
  if (a === undefined || a.kind !== b.kind || a.target !== b.target) return false;
  if (a.kind !== "link" && a.mode !== b.mode) return false;
  if (a.kind !== "file") return true;
  const isKnown = a.ctime !== "" && b.ctime !== "";
  return a.size === b.size && a.mtime === b.mtime && a.ctime !== "?" && (!isKnown || a.ctime === b.ctime);
}

/** The stored form: gzip of `find`'s own format, in path order. */
export function packManifest(entries: readonly ManifestEntry[]): Uint8Array {
  const text = [...entries].sort(byPath).map(line);
  const joined = text.join("");
  const bytes = joined.isWellFormed() ? Buffer.from(joined) : Buffer.concat(text.map(bytesOfText));
  return gzipSync(bytes, { level: 3 });
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
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  // Read as bytes where a name is no UTF-8, and then name by name.
  const isText = isUtf8(buffer);
  const fields = buffer.toString(isText ? "utf8" : "latin1").split("\0");
  const named = (field: string): string => (isText ? field : textOfBytes(Buffer.from(field, "latin1")));
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const match = /^(\S+) ([0-7]+) (\d+) (\S*) ([^]+)$/.exec(fields[at] ?? "");
    const kind = KINDS[match?.[1] ?? ""];
    if (match === null || kind === undefined) continue;
    const [, , mode = "", size = "", times = "", path = ""] = match;
    const [mtime = "", ctime = ""] = times.split("/");
    const isFile = kind === "file";
    yield {
      kind,
      path: named(path),
      mode: Number.parseInt(mode, 8),
      size: isFile ? Number(size) : 0,
      // A folder's time changes with every file in it, and a link's says nothing: only a file's counts as a change.
      mtime: isFile ? mtime : "",
      ctime: isFile ? ctime : "",
      target: named(fields[at + 1] ?? ""),
    };
  }
}

// A link's mode is always 777 on Linux, but not on every client that packs one.
function line({ kind, mode, size, mtime, ctime, path, target }: ManifestEntry): string {
  const times = ctime === "" ? mtime : `${mtime}/${ctime}`;
  return `${LETTERS[kind]} ${(kind === "link" ? 0o777 : mode).toString(8)} ${size} ${times} ${path}\0${target}\0`;
}

function byPath(a: ManifestEntry, b: ManifestEntry): number {
  return a.path < b.path ? -1 : a.path > b.path ? 1 : 0;
}
