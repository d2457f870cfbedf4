/** The stored list of a workspace's files. Pure: no clock, no I/O but gzip in memory. */
import { isUtf8 } from "node:buffer";
import { gunzipSync, gzipSync } from "node:zlib";
import { bytesOfText, textOfBytes } from "./path-text.ts";

/** One path of the workspace, relative to it, with `/`, as text that `path-text.ts` makes of any name. */
export interface ManifestEntry {
  readonly kind: "file" | "folder" | "link";
  readonly path: string;
  /** Permission bits, such as 0o644. */
  readonly mode: number;
  /** Size of a file in bytes; 0 for the other kinds. */
  readonly size: number;
  /** For a file: seconds since 1970 with nanoseconds, as text, because a number would lose the last digits. Else empty. */
  readonly mtime: string;
  /**
   * For a file: the time of its last change of any kind, which no program can set back. Empty = unknown: then size and `mtime`
   * decide. `?` = it may have changed since: it counts as changed.
   */
  readonly ctime: string;
  /** For a link: its target, as written. */
  readonly target: string;
}

export interface Skipped {
  readonly path: string;
  readonly bytes: number;
  /** With `not-readable`, `too-many` and `repository-as-before`, the save keeps the earlier state. */
  readonly reason:
    | "too-large"
    | "workspace-too-large"
    | "not-readable"
    | "too-many"
    | "path-too-long"
    | "repository"
    | "repository-as-before";
}

/** Folders that a command can recreate (`npm ci`, `pip install`): not saved, at any depth, but for what Git tracks there. Not `target`, `build` or `dist`:
 * these names are used for sources too, and a lost source is worse than a large row. */
export const REBUILT_FOLDERS: readonly string[] = ["node_modules", ".venv", "__pycache__"];

/** Larger files are not saved, but named in the result. Source: requirement of 64 MB. */
export const MAX_FILE_BYTES = 64 * 1024 * 1024;

/** All files of a checkpoint together; beyond it the largest are skipped. */
export const MAX_PACK_BYTES = 256 * 1024 * 1024;

const KINDS: Readonly<Record<string, ManifestEntry["kind"]>> = { f: "file", d: "folder", l: "link" };
const MISSING = "x";
const LETTERS = { file: "f", folder: "d", link: "l" } as const;

/** The stored form, also written by agent/workspace/tree.py: gzip of two fields per path, each ended by NUL, so that any name is safe. */
export function packManifest(entries: readonly ManifestEntry[]): Uint8Array {
  const text = [...entries].sort(byPath).map(line);
  const joined = text.join("");
  const bytes = joined.isWellFormed() ? Buffer.from(joined) : Buffer.concat(text.map(bytesOfText));
  return gzipSync(bytes, { level: 3 });
}

/** @throws RangeError when a path or the size is implausible. */
export function unpackManifest(bytes: Uint8Array): ManifestEntry[] {
  const entries = [...entriesIn(gunzipSync(bytes, { maxOutputLength: MAX_PACK_BYTES }))];
  assertSafePaths(entries);
  return entries;
}

/** Paths that were there and are not in the save, and why: in it, their absence says nothing. A folder stands for all in it. */
export interface MissingPaths {
  readonly reasons: ReadonlyMap<string, string>;
  /** Why a path is missing; undefined if it would be in the save. */
  reasonOf(path: string): string | undefined;
}

/** The letter of a path that the base has and the workspace does not. */
const REMOVED = "w";
/**
 * The stored list of all files of a workspace that stands on a base.
 * @param difference the list that agent/workspace/save.py writes of such a workspace
 * @throws RangeError as `unpackManifest`
 */
export function overBase(base: Uint8Array, difference: Uint8Array): Uint8Array {
  const changed = unpackManifest(difference);
  const bytes = gunzipSync(difference, { maxOutputLength: MAX_PACK_BYTES });
  const removed = [...records(bytes)].flatMap(({ letter, path }) => (letter === REMOVED ? [path] : []));
  // Nothing of the base is below what is no folder any more.
  const gone = new Set([
    ...removed,
    ...changed.flatMap(({ kind, path }) => (kind === "folder" ? [] : [path])),
  ]);
  const own = new Set(changed.map(({ path }) => path));
  const ofBase = unpackManifest(base).filter(({ path }) => !own.has(path) && !isAtOrBelow(path, gone));
  return Buffer.concat([
    packManifest([...ofBase, ...changed]),
    packMissing(unpackMissing(difference).reasons),
  ]);
}

function isAtOrBelow(path: string, paths: ReadonlySet<string>): boolean {
  for (let at = path.length; at > 0; at = path.lastIndexOf("/", at - 1))
    if (paths.has(path.slice(0, at))) return true;
  return false;
}

/** As a part behind the list; nothing if nothing is missing. */
function packMissing(reasons: ReadonlyMap<string, string>): Uint8Array {
  const lines = [...reasons].map(([path, reason]) => `${MISSING} 0 0  ${path}\0${reason}\0`);
  return lines.length === 0
    ? new Uint8Array()
    : gzipSync(Buffer.concat(lines.map(bytesOfText)), { level: 3 });
}

/** The second part of a stored list, which agent/workspace/tree.py writes. @throws RangeError when the size is implausible */
export function unpackMissing(bytes: Uint8Array): MissingPaths {
  const reasons = new Map<string, string>();
  for (const { letter, path, target } of records(gunzipSync(bytes, { maxOutputLength: MAX_PACK_BYTES })))
    if (letter === MISSING) reasons.set(path, target);
  const reasonOf = (path: string): string | undefined => {
    for (let at = path.length; at > 0; at = path.lastIndexOf("/", at - 1)) {
      const reason = reasons.get(path.slice(0, at));
      if (reason !== undefined) return reason;
    }
    return reasons.get(".");
  };
  return { reasons, reasonOf };
}

/**
 * Refuses what could lead out of the workspace: absolute paths, `..`, and anything below a link or a file.
 * Linear in the paths' length, at any depth.
 * @throws RangeError naming the path
 */
export function assertSafePaths(entries: readonly Pick<ManifestEntry, "kind" | "path">[]): void {
  for (const { path } of entries) {
    if (/(?:^|\/)\.{0,2}(?:\/|$)/.test(path) || path.includes("\0"))
      throw new RangeError(`The path ${JSON.stringify(path)} does not stay in the workspace: refused.`);
  }
  const sorted = entries.map(({ path }) => path).sort();
  for (const { kind, path } of entries) {
    if (kind === "folder") continue;
    const below = sorted[firstFrom(sorted, `${path}/`)];
    if (below?.startsWith(`${path}/`) === true)
      throw new RangeError(`The path ${JSON.stringify(below)} lies below a ${kind}: refused.`);
  }
}

/** Index of the first of `sorted` that is not before `text`. */
function firstFrom(sorted: readonly string[], text: string): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sorted[middle] ?? "") < text) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** One path as it is stored. */
interface StoredRecord extends Omit<ManifestEntry, "kind" | "mode" | "size" | "ctime"> {
  readonly letter: string;
  readonly mode: string;
  readonly size: string;
}

function* entriesIn(bytes: Uint8Array): Generator<ManifestEntry> {
  for (const { letter, mode, size, mtime: times, path, target } of records(bytes)) {
    const kind = KINDS[letter];
    if (kind === undefined) continue;
    const [mtime = "", ctime = ""] = times.split("/");
    const isFile = kind === "file";
    yield {
      kind,
      path,
      mode: Number.parseInt(mode, 8),
      size: isFile ? Number(size) : 0,
      // A folder's time changes with every file in it, and a link's time is irrelevant: only a file's time counts as a change.
      mtime: isFile ? mtime : "",
      ctime: isFile ? ctime : "",
      target,
    };
  }
}

function* records(bytes: Uint8Array): Generator<StoredRecord> {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  // If any name is not UTF-8, names are decoded one by one.
  const isText = isUtf8(buffer);
  const fields = buffer.toString(isText ? "utf8" : "latin1").split("\0");
  const decodedName = (field: string): string => (isText ? field : textOfBytes(Buffer.from(field, "latin1")));
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const match = /^(\S+) ([0-7]+) (\d+) (\S*) ([^]+)$/.exec(fields[at] ?? "");
    if (match === null) continue;
    const [, letter = "", mode = "", size = "", mtime = "", path = ""] = match;
    yield { letter, mode, size, mtime, path: decodedName(path), target: decodedName(fields[at + 1] ?? "") };
  }
}

// A link's mode is always 777 on Linux, but not on every client that packs one.
function line({ kind, mode, size, mtime, ctime, path, target }: ManifestEntry): string {
  const times = ctime === "" ? mtime : `${mtime}/${ctime}`;
  return `${LETTERS[kind]} ${(kind === "link" ? 0o777 : mode).toString(8)} ${size} ${times} ${path}\0${target}\0`;
}

function byPath(a: ManifestEntry, b: ManifestEntry): number {
  if (a.path === b.path) return 0;
  return a.path < b.path ? -1 : 1;
}
