/** The lines of a change on which a forge takes a comment: those that its diff shows, with three lines around each change. */
import type { GitAccess } from "../git/git-access.ts";
import { runGit } from "../git/run-git.ts";

/** As the forges show them. */
const CONTEXT = "-U3";
/** More changed files than these are no place for a comment. Chosen; no forge shows so many. */
const MAX_FILES = 20_000;

/** A line that the diff shows, by its number on each side; undefined where the file has none. */
export interface DiffLine {
  readonly old: number | undefined;
  readonly new: number | undefined;
  /** Which part of the file's diff shows it, from 0. */
  readonly hunk: number;
}

export interface DiffFile {
  /** The same, unless it was renamed. Of a deleted file, both are its former path. */
  readonly oldPath: string;
  readonly newPath: string;
  readonly lines: readonly DiffLine[];
}

interface RawFile {
  readonly status: string;
  readonly oldBlob: string;
  readonly newBlob: string;
  readonly oldPath: string;
  readonly newPath: string;
}

/**
 * Of some files of a change, by the path that a finding names: that after the change, or a former one.
 * @param range the commits before and after it
 */
export async function diffFiles(
  access: GitAccess,
  mirror: string,
  range: { readonly from: string; readonly to: string },
  paths: ReadonlySet<string>,
): Promise<ReadonlyMap<string, DiffFile>> {
  const args = ["diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--find-renames", range.from, range.to];
  const listed = await runGit(access, args, { cwd: mirror });
  const raw = listed.code === 0 ? readRaw(listed.out) : [];
  const files = new Map<string, DiffFile>();
  for (const path of paths) {
    const file = raw.find(({ newPath }) => newPath === path) ?? raw.find(({ oldPath }) => oldPath === path);
    if (file !== undefined) files.set(path, await withLines(access, mirror, file));
  }
  return files;
}

/** Each as `:mode mode blob blob status`, a path, and of a renamed file a second one, all ended by NUL. */
export function readRaw(out: string): readonly RawFile[] {
  const fields = out.split("\0");
  const files: RawFile[] = [];
  for (let at = 0; at < fields.length && files.length < MAX_FILES; at += 2) {
    const [, , oldBlob, newBlob, status] = (fields[at] ?? "").split(" ");
    const oldPath = fields[at + 1];
    if (oldBlob === undefined || newBlob === undefined || status === undefined || !oldPath) break;
    const isMoved = /^[RC]/.test(status);
    if (isMoved) at += 1;
    files.push({
      status,
      oldBlob,
      newBlob,
      oldPath,
      newPath: isMoved ? (fields[at + 1] ?? oldPath) : oldPath,
    });
  }
  return files;
}

async function withLines(
  access: GitAccess,
  mirror: string,
  { status, oldBlob, newBlob, oldPath, newPath }: RawFile,
): Promise<DiffFile> {
  const named = { oldPath, newPath };
  if (status === "A" || status === "D") {
    const blob = status === "A" ? newBlob : oldBlob;
    const { out } = await runGit(access, ["cat-file", "blob", blob], { cwd: mirror });
    const count = out === "" ? 0 : out.split("\n").length - (out.endsWith("\n") ? 1 : 0);
    const side = (line: number) =>
      status === "A" ? { old: undefined, new: line } : { old: line, new: undefined };
    return {
      ...named,
      lines: Array.from({ length: count }, (_, index) => ({ ...side(index + 1), hunk: 0 })),
    };
  }
  const args = ["diff", "--no-color", "--no-ext-diff", "--no-textconv", CONTEXT, oldBlob, newBlob];
  const patch = await runGit(access, args, { cwd: mirror });
  return { ...named, lines: patch.code === 0 ? readHunks(patch.out) : [] };
}

/** The lines of one file's diff. */
export function readHunks(diff: string): readonly DiffLine[] {
  const lines: DiffLine[] = [];
  let [old, now, hunk] = [0, 0, -1];
  for (const line of diff.split("\n")) {
    const head = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/.exec(line);
    if (head !== null) {
      [old, now, hunk] = [Number(head[1]), Number(head[2]), hunk + 1];
      continue;
    }
    if (hunk < 0) continue;
    if (line.startsWith("+")) lines.push({ old: undefined, new: now++, hunk });
    else if (line.startsWith("-")) lines.push({ old: old++, new: undefined, hunk });
    else if (line.startsWith(" ")) lines.push({ old: old++, new: now++, hunk });
  }
  return lines;
}
