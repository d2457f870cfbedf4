/**
 * What a patch makes of a checkout's files, computed beside the checkout. A session's patch is of working-tree bytes, and Git would
 * apply it to what its filters make of them (line ends, `ident`, encodings, Git LFS, encryption): there it need not fit.
 */
import {
  chmodSync,
  copyFileSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  type Stats,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bytesOfText, textOfBytes } from "../../activities/store/path-text.ts";
import { personsGit, mustGit, describeGit } from "./persons-git.ts";

/** A path after the change. */
export interface PatchedFile {
  /** From the top of the checkout. */
  readonly path: string;
  /** `stored`: the content is as Git stores it, because the patch fits that and not the file. */
  readonly form: "bytes" | "stored";
  /** Undefined if the patch removes it. */
  readonly content: { readonly bytes: Buffer; readonly mode: "100644" | "100755" | "120000" } | undefined;
}

/** Nothing between the files and the patch: it outranks a `.gitattributes` that the patch itself may change. */
const NO_FILTERS = "* -text -eol -crlf -ident -filter -working-tree-encoding -whitespace\n";
const PLAIN = ["-c", "core.autocrlf=false", "-c", "core.fileMode=true", "-c", "core.symlinks=true"];
const APPLY = [...PLAIN, "apply", "--whitespace=nowarn"];

/**
 * @param prefix of the patch's paths in the checkout; empty or with a final `/`
 * @returns `refused`: Git's words, if the patch does not fit
 */
export async function patchedFiles(
  top: string,
  prefix: string,
  patch: string,
): Promise<readonly PatchedFile[] | { readonly refused: string }> {
  const beside = mkdtempSync(join(tmpdir(), "longhaul-apply-"));
  try {
    await mustGit(beside, ["init", "--quiet", "--template=", "."]);
    mkdirSync(join(beside, ".git", "info"), { recursive: true });
    writeFileSync(join(beside, ".git", "info", "attributes"), NO_FILTERS);
    const counted = await personsGit(beside, [...APPLY, "--numstat", "-z"], patch);
    if (counted.code !== 0) return { refused: describeGit(counted) };
    const paths = pathsOf(counted.out);
    const through = paths.find((path) => leadsThroughLink(top, `${prefix}${path}`));
    if (through !== undefined) return { refused: `${prefix}${through}: beyond a symbolic link` };
    const stored = new Set<string>();
    for (const path of paths) {
      const isStored = await copyFitting({ top, beside, path, prefix }, patch);
      if (isStored) stored.add(path);
    }
    const applied = await personsGit(beside, APPLY, patch);
    if (applied.code !== 0) return { refused: describeGit(applied) };
    return paths.map((path) => ({
      path: `${prefix}${path}`,
      form: stored.has(path) ? "stored" : "bytes",
      content: contentOf(onDisk(beside, path)),
    }));
  } finally {
    rmSync(beside, { recursive: true, force: true });
  }
}

/** A path of any bytes below a folder. */
export const onDisk = (folder: string, path: string): Buffer =>
  Buffer.concat([Buffer.from(`${folder}/`), bytesOfText(path)]);

/** What is there, itself and not where it leads; undefined if nothing is, also where a folder on the way is a file. */
export function lookAt(path: Buffer): Stats | undefined {
  try {
    return lstatSync(path);
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "")) return undefined;
    throw error;
  }
}

/** Paths as Git reads them with `-z`. */
export const listed = (paths: readonly string[]): Buffer =>
  Buffer.concat(paths.flatMap((path) => [bytesOfText(path), Buffer.alloc(1)]));

/** The paths of `--numstat -z`: after two numbers and tabs. One that becomes a link, or was one, is named twice. */
const pathsOf = (out: Buffer): string[] => [
  ...new Set(
    textOfBytes(out)
      .split("\0")
      .filter((line) => line !== "")
      .map((line) => line.replace(/^[^\t]*\t[^\t]*\t/, "")),
  ),
];

function leadsThroughLink(top: string, path: string): boolean {
  const parts = path.split("/").slice(0, -1);
  return parts.some((_, at) => {
    const stats = lookAt(onDisk(top, parts.slice(0, at + 1).join("/")));
    return stats?.isSymbolicLink() === true;
  });
}

interface Beside {
  readonly top: string;
  readonly beside: string;
  readonly path: string;
  readonly prefix: string;
}

/**
 * Puts the form of a file beside that the patch fits: its bytes, or else what Git stores of them.
 * @returns whether it is what Git stores
 */
async function copyFitting({ top, beside, path, prefix }: Beside, patch: string): Promise<boolean> {
  const [from, to] = [onDisk(top, `${prefix}${path}`), onDisk(beside, path)];
  const stats = lookAt(from);
  if (stats?.isSymbolicLink() === true) {
    makeParent(beside, path);
    symlinkSync(readlinkSync(from, { encoding: "buffer" }), to);
    return false;
  }
  if (stats?.isFile() === true) {
    makeParent(beside, path);
    copyFileSync(from, to);
    chmodSync(to, stats.mode & 0o111 ? 0o755 : 0o644);
  } else if (stats !== undefined) return false;
  const blob = await personsGit(top, ["cat-file", "blob", `:${nameOf(`${prefix}${path}`)}`]);
  if (blob.code !== 0 || (stats !== undefined && readFileSync(to).equals(blob.out))) return false;
  const check = [...APPLY, "--check", `--include=${asPattern(path)}`];
  if (stats !== undefined && (await personsGit(beside, check, patch)).code === 0) return false;
  makeParent(beside, path);
  writeFileSync(to, blob.out);
  if ((await personsGit(beside, check, patch)).code === 0) return true;
  // Git's words are then about the file as the person has it.
  if (stats === undefined) rmSync(to);
  else copyFileSync(from, to);
  return false;
}

const makeParent = (folder: string, path: string) =>
  mkdirSync(onDisk(folder, path.split("/").slice(0, -1).join("/")), { recursive: true });

/** An argument is UTF-8: what cannot be named in one is not looked up. */
const nameOf = (path: string): string => (path.isWellFormed() ? path : "\uFFFD");

/** A pattern that matches this path alone. */
const asPattern = (path: string): string => path.replace(/[*?[\\]/g, "\\$&");

function contentOf(path: Buffer): PatchedFile["content"] {
  const stats = lookAt(path);
  if (stats === undefined || stats.isDirectory()) return undefined;
  if (stats.isSymbolicLink()) return { bytes: readlinkSync(path, { encoding: "buffer" }), mode: "120000" };
  return { bytes: readFileSync(path), mode: stats.mode & 0o111 ? "100755" : "100644" };
}
