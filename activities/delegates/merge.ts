/** Which of a delegate's changes come back, file by file. Pure. */
import type { ManifestEntry } from "../store/workspace-manifest.ts";

/** A file at one moment, by its content and permission bits; undefined if there was none. */
export type FileState = { readonly hash: string; readonly mode: number | undefined } | undefined;

export type Verdict =
  /** The parent has the same file already, perhaps by an attempt whose answer was lost. */
  { readonly kind: "same" } | { readonly kind: "take" } | { readonly kind: "leave"; readonly reason: string };

/** @param base as the delegate got it @param child as the delegate left it @param parent as the parent has it now */
export function mergeFile(base: FileState, child: FileState, parent: FileState): Verdict {
  if (isSame(child, parent)) return { kind: "same" };
  if (isSame(base, parent)) return { kind: "take" };
  if (base === undefined) return { kind: "leave", reason: "a file of that name was made here meanwhile" };
  if (parent === undefined) return { kind: "leave", reason: "it was removed here meanwhile" };
  return { kind: "leave", reason: "it was changed here meanwhile" };
}

/** Bits that are not known count as equal. */
function isSame(one: FileState, other: FileState): boolean {
  if (one === undefined || other === undefined) return one === other;
  return one.hash === other.hash && (one.mode ?? other.mode) === (other.mode ?? one.mode);
}

export interface Candidates {
  /** Files that one of the two lists has in another state, or not at all. */
  readonly files: readonly string[];
  /** Changes that cannot be merged. */
  readonly left: readonly { readonly path: string; readonly reason: string }[];
}

/**
 * What may differ between two saves: by the times in their lists, so that only these files' content is read. Folders come and
 * go with their files.
 */
export function changedPaths(before: readonly ManifestEntry[], after: readonly ManifestEntry[]): Candidates {
  const old = new Map(before.map((entry) => [entry.path, entry]));
  const now = new Map(after.map((entry) => [entry.path, entry]));
  const files: string[] = [];
  const left: { path: string; reason: string }[] = [];
  for (const path of [...new Set([...old.keys(), ...now.keys()])].toSorted()) {
    const [was, is] = [old.get(path), now.get(path)];
    if (was !== undefined && is !== undefined && isAlike(was, is)) continue;
    const kinds = new Set([was?.kind, is?.kind]);
    if (!path.isWellFormed()) left.push({ path: path.toWellFormed(), reason: "its name is not UTF-8" });
    else if (kinds.has("link")) left.push({ path, reason: "it is a link, or was one" });
    else if (kinds.has("file") && kinds.has("folder"))
      left.push({ path, reason: "it was a folder and is a file, or the other way round" });
    else if (kinds.has("file")) files.push(path);
  }
  return { files, left };
}

function isAlike(one: ManifestEntry, other: ManifestEntry): boolean {
  if (one.kind !== other.kind) return false;
  if (one.kind === "folder") return true;
  if (one.kind === "link") return one.target === other.target;
  return (
    one.size === other.size &&
    one.mode === other.mode &&
    one.mtime === other.mtime &&
    one.ctime === other.ctime &&
    // It may have changed since it was looked at.
    one.ctime !== "?"
  );
}
