/** Finds the Git LFS pointers of commits in one of our repositories. */
import type { GitAccess } from "./git-access.ts";
import { git } from "./run-git.ts";

export interface LfsObject {
  /** SHA-256 of the content, hex. */
  readonly oid: string;
  readonly size: number;
}

/** Pointers are smaller. Source: git-lfs, docs/spec.md. */
const MAX_POINTER_BYTES = 1_024;
/** The lines of the version and the hash alone are longer. */
const MIN_POINTER_BYTES = 110;
/** Per call of git, so that the output stays far below its limit. */
const BLOBS_AT_ONCE = 20_000;

/** The objects of a commit's files. */
export async function lfsObjectsOf(access: GitAccess, folder: string, commit: string): Promise<LfsObject[]> {
  const listed = await git(access, ["ls-tree", "-r", "-l", "--full-tree", commit], { cwd: folder });
  const files = /^100\d{3} blob (?<blob>[0-9a-f]{40,64}) +(?<size>\d+)\t/gm;
  return readPointers(access, folder, listed.matchAll(files));
}

/** The objects of all files in a commit's history that are not in the history of `base`; undefined: of its whole history. */
export async function lfsObjectsSince(
  access: GitAccess,
  folder: string,
  commit: string,
  base: string | undefined,
): Promise<LfsObject[]> {
  const range = base === undefined ? [commit] : [commit, `^${base}`];
  const objects = await git(access, ["rev-list", "--objects", "--no-object-names", ...range], {
    cwd: folder,
  });
  const check = ["cat-file", "--batch-check=%(objecttype) %(objectsize) %(objectname)"];
  const checked = await git(access, check, { cwd: folder, input: `${objects}\n` });
  return readPointers(access, folder, checked.matchAll(/^blob (?<size>\d+) (?<blob>[0-9a-f]{40,64})$/gm));
}

const isPointerSize = (bytes: number): boolean => bytes >= MIN_POINTER_BYTES && bytes < MAX_POINTER_BYTES;

/** @param listed blobs with their sizes */
async function readPointers(
  access: GitAccess,
  folder: string,
  listed: Iterable<RegExpMatchArray>,
): Promise<LfsObject[]> {
  const small = [...listed].filter(({ groups }) => isPointerSize(Number(groups?.["size"])));
  const blobs = small.map(({ groups }) => groups?.["blob"] ?? "");
  const found = new Map<string, LfsObject>();
  for (let at = 0; at < blobs.length; at += BLOBS_AT_ONCE) {
    const input = `${blobs.slice(at, at + BLOBS_AT_ONCE).join("\n")}\n`;
    const text = await git(access, ["cat-file", "--batch"], { cwd: folder, input });
    for (const object of pointersIn(text)) found.set(object.oid, object);
  }
  return [...found.values()];
}

/** Parses the output of `git cat-file --batch`: each blob begins on a new line, after one with its hash. */
function pointersIn(batch: string): LfsObject[] {
  const pointers = batch.matchAll(
    /^[0-9a-f]{40,64} blob \d+\nversion https:\/\/git-lfs\.github\.com\/spec\/v1\n(?:ext-\d-[^\n]*\n)*oid sha256:([0-9a-f]{64})\nsize (\d{1,15})$/gm,
  );
  return [...pointers].map(([, oid = "", size]) => ({ oid, size: Number(size) }));
}
