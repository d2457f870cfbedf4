/** Writes a workspace's files to the person's disk: nothing lands outside the folder, and nothing written runs unasked. */
import {
  lstat,
  mkdir,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  rmdir,
  symlink,
  utimes,
  writeFile,
} from "node:fs/promises";
import { basename, dirname, join, resolve, sep } from "node:path";
import type { WorkspaceFile } from "../../activities/store/workspace-pack.ts";
import { notPossible, unwritable } from "../console/errors.ts";
import { isGitName, mayBeHead, withSafeRepositories } from "./safe-repositories.ts";

export interface Written {
  readonly files: number;
  /** Links that lead out of the folder, and names that this disk does not support. */
  readonly skipped: readonly string[];
  /** Omitted parts of repositories that could run programs or lead elsewhere, such as `core.fsmonitor in .git/config`. */
  readonly unsafe: readonly string[];
  /** Paths of repositories that already existed in the folder: the session's files for them were not written. */
  readonly untouched: readonly string[];
}

export interface WriteOptions {
  /** The folder is ours: its earlier content is replaced. */
  readonly ours?: boolean;
  readonly force?: boolean;
  /** Write repositories unchanged, with hooks and configuration. */
  readonly git?: boolean;
}

/** Most systems allow 4,096 bytes; some are reserved for the names of temporary files. */
const MAX_PATH_BYTES = 4_000;
/** Files written in parallel: Node's pool has four threads, and each file takes several sequential calls. */
const AT_ONCE = 16;
/** A folder for what is not whole yet, and for what was there before. */
const BESIDE = ".longhaul-new";
const KEPT = "kept";

type Content = Exclude<WorkspaceFile, { kind: "folder" }>;

/**
 * Writes files into a folder, which is created if it is missing.
 * @throws ClientError (impossible), before anything is written, when the folder holds other files or a link on a path,
 * or is part of a repository's own data; also if a file or folder cannot be written
 */
export async function writeWorkspace(
  all: readonly WorkspaceFile[],
  folder: string,
  options: WriteOptions = {},
): Promise<Written> {
  const target = resolve(folder);
  try {
    return await writeInto(target, all, options);
  } catch (error) {
    const fix = "The session keeps all its files. Name another folder: longhaul pull ID DIR";
    throw unwritable(target, error, fix);
  }
}

async function writeInto(
  target: string,
  all: readonly WorkspaceFile[],
  options: WriteOptions,
): Promise<Written> {
  const { files: writableFiles, skipped } = writable(all, target);
  const { files: safe, leftOut: unsafe } = options.git
    ? { files: writableFiles, leftOut: [] }
    : withSafeRepositories(writableFiles, { bareRepositories: false });
  if (options.ours) return { files: await replaceFolder(target, safe), skipped, unsafe, untouched: [] };
  if (!options.git) await refuseRepositoryData(target);
  const isNew = (await readdir(target).catch(() => [])).length === 0;
  const folders = foldersOf(safe);
  const repositories =
    isNew || options.git
      ? new Set<string>()
      : ((await readKept(target)) ?? (await repositoriesAt(target, folders)));
  const untouched = new Set<string>();
  const files = safe.filter(({ path }) => {
    const repository = outerOf(path, repositories);
    if (repository !== undefined) untouched.add(repository);
    return repository === undefined;
  });
  if (!isNew) await refuseLinks(target, folders);
  if (!isNew && !options.force) await refuseOverwriting(target, files);
  await createFolder(target);
  return { files: await writeFiles(target, files, repositories), skipped, unsafe, untouched: [...untouched] };
}

/** Selects the files that can be written: no link leads out of the folder, and no two names become the same. */
function writable(all: readonly WorkspaceFile[], target: string) {
  const files: WorkspaceFile[] = [];
  const skipped: string[] = [];
  for (const file of all) {
    const isText = file.path.isWellFormed() && (file.kind !== "link" || file.target.isWellFormed());
    const fits = Buffer.byteLength(target) + Buffer.byteLength(file.path) < MAX_PATH_BYTES;
    const isPlain = (sep === "/" || !/[\\:]/.test(file.path)) && file.path.split("/")[0] !== BESIDE;
    const isInside = file.kind !== "link" || staysInside(file.path, file.target);
    if (isText && fits && isPlain && isInside) files.push(file);
    else skipped.push(file.path.toWellFormed());
  }
  return { files, skipped };
}

/**
 * Whether a link stays inside the folder, whatever other links it passes through. It may go up only at its beginning, where
 * the path consists of real folders; every link further down satisfies the same condition.
 */
export function staysInside(path: string, target: string): boolean {
  if (target === "" || target.startsWith("/") || (sep !== "/" && /[\\:]/.test(target))) return false;
  const parts = target.split("/").filter((part) => part !== "" && part !== ".");
  const ups = parts.findIndex((part) => part !== "..");
  const down = ups < 0 ? [] : parts.slice(ups);
  const depth = path.split("/").length - 1;
  return (ups < 0 ? parts.length : ups) <= depth && !down.includes("..") && !down.some(isGitName);
}

/** The new content replaces the old one only once it is complete. What a killed process left of either goes with the next. */
async function replaceFolder(target: string, files: readonly WorkspaceFile[]): Promise<number> {
  const [fresh, old] = [`${target}.new`, `${target}.old`];
  try {
    await rm(fresh, { recursive: true, force: true });
    await createFolder(dirname(fresh));
    await mkdir(fresh, { mode: 0o700 });
    const count = await writeFiles(fresh, files, new Set());
    await rm(old, { recursive: true, force: true });
    if (await exists(target)) await rename(target, old);
    await rename(fresh, target);
    await rm(old, { recursive: true, force: true });
    return count;
  } catch (error) {
    await rm(fresh, { recursive: true, force: true }).catch(() => undefined);
    throw error;
  }
}

/** Like `mkdir` with `recursive`, which never ends where an existing folder, such as `/proc`, answers with ENOENT. */
async function createFolder(path: string): Promise<void> {
  const parent = dirname(path);
  if (parent !== path && !(await exists(parent))) await createFolder(parent);
  try {
    await mkdir(path);
  } catch (error) {
    const isThere = (await stat(path).catch(() => undefined))?.isDirectory() === true;
    if (!isThere) throw error;
  }
}

/** Git would run hooks that are written next to a `HEAD` of the person's own repository. */
async function refuseRepositoryData(target: string): Promise<void> {
  for (let at = target; ; at = dirname(at)) {
    if (isGitName(basename(at)) || (await hasHead(at))) {
      throw notPossible(
        `${at} is a Git repository's own data: nothing was written.`,
        "Name a folder outside it, or add --git to write there anyway.",
      );
    }
    if (at === dirname(at)) return;
  }
}

/** Repositories at the target: the `.git` folder or file, else the folder that contains the `HEAD`. */
async function repositoriesAt(target: string, folders: ReadonlySet<string>): Promise<Set<string>> {
  const repositories = new Set<string>();
  for (const folder of folders) {
    if (folder !== "" && outerOf(folder, repositories) !== undefined) continue;
    if (await exists(join(target, folder, ".git")))
      repositories.add(folder === "" ? ".git" : `${folder}/.git`);
    if (basename(folder) !== ".git" && (await hasHead(join(target, folder)))) repositories.add(folder);
  }
  return repositories;
}

async function hasHead(folder: string): Promise<boolean> {
  const path = join(folder, "HEAD");
  const stat = await lstat(path).catch(() => undefined);
  if (stat?.isSymbolicLink()) return true;
  if (stat?.isFile() !== true) return false;
  const file = await open(path).catch(() => undefined);
  try {
    const { buffer, bytesRead } = (await file?.read(Buffer.alloc(256))) ?? {
      buffer: Buffer.of(),
      bytesRead: 0,
    };
    return mayBeHead(buffer.subarray(0, bytesRead));
  } finally {
    await file?.close();
  }
}

/** All parent folders of the files, outer ones first; "" is the target itself. */
function foldersOf(files: readonly WorkspaceFile[]): Set<string> {
  const folders = new Set([""]);
  const add = (folder: string): void => {
    if (folder === "." || folders.has(folder)) return;
    add(dirname(folder));
    folders.add(folder);
  };
  for (const { kind, path } of files) add(kind === "folder" ? path : dirname(path));
  return folders;
}

/** The folder of `outer` that is or contains a path. */
function outerOf(path: string, outer: ReadonlySet<string>): string | undefined {
  if (outer.size === 0) return undefined;
  for (let at = path; at !== "."; at = dirname(at)) if (outer.has(at)) return at;
  return undefined;
}

/** An existing link in the folder must not lead a file out of it. */
async function refuseLinks(target: string, folders: ReadonlySet<string>): Promise<void> {
  for (const folder of folders) {
    const path = join(target, folder);
    const stat = folder === "" ? undefined : await lstat(path).catch(() => undefined);
    if (stat?.isSymbolicLink())
      throw notPossible(`${path} is a link, and nothing is written through it.`, "Name an empty folder.");
  }
}

/** Existing files with the same content are accepted, so the same state can be pulled twice. */
async function refuseOverwriting(target: string, files: readonly WorkspaceFile[]): Promise<void> {
  for (const file of files) {
    if (file.kind === "folder") continue;
    const path = join(target, file.path);
    const stats = await lstat(path).catch(() => undefined);
    if (stats === undefined) continue;
    const same =
      file.kind === "file" &&
      stats.isFile() &&
      Buffer.from(file.bytes).equals(await readFile(path).catch(() => Buffer.of()));
    if (!same) {
      throw notPossible(
        `${path} already exists and differs: nothing was written.`,
        "Name an empty folder, or add --force to overwrite it.",
      );
    }
  }
}

/**
 * Each file is there as before, or whole; what a killed process wrote is the same that is to be written. So the same call completes
 * what it began.
 * @param repositories repositories that were in the target before
 */
async function writeFiles(
  target: string,
  files: readonly WorkspaceFile[],
  repositories: ReadonlySet<string>,
): Promise<number> {
  const contents = files.filter((file) => file.kind !== "folder");
  const beside = join(target, BESIDE);
  await mkdir(beside, { recursive: true });
  // Before the first folder of a repository is there, which would look as if it had been.
  const bytes = Buffer.from(JSON.stringify([...repositories]));
  await placeFile(join(beside, KEPT), join(beside, "0"), { kind: "file", bytes, mode: 0o600 });
  for (const folder of foldersOf(files)) await mkdir(join(target, folder), { recursive: true });
  const links = contents.filter((file) => file.kind === "link");
  const others = contents.filter((file) => file.kind === "file");
  const placeContent = (file: Content, slot: number) =>
    placeFile(
      join(target, file.path),
      join(beside, String(slot)),
      file.kind === "link" ? file : { ...file, mode: file.mode & 0o777 },
    );
  for (let at = 0; at < others.length; at += AT_ONCE)
    await Promise.all(others.slice(at, at + AT_ONCE).map(placeContent));
  // Links are written last, so that no path leads through one before.
  for (const link of links) await placeContent(link, 0);
  await rm(beside, { recursive: true, force: true });
  return contents.length;
}

/** The repositories that were there before a call that was killed; undefined if none was. */
async function readKept(target: string): Promise<Set<string> | undefined> {
  const text = await readFile(join(target, BESIDE, KEPT), "utf8").catch(() => undefined);
  return text === undefined ? undefined : new Set<string>(JSON.parse(text));
}

const exists = (path: string) =>
  lstat(path).then(
    () => true,
    () => false,
  );

/** A file as it is to be. */
export interface NewFile {
  readonly kind: "file";
  readonly bytes: Uint8Array;
  readonly mode: number;
  readonly mtimeMs?: number | undefined;
}

export interface NewLink {
  readonly kind: "link";
  readonly target: string | Buffer;
}

/**
 * A file on a person's disk is there as before, or whole and new: never half of it, wherever we are killed. Makes a file or
 * link, in place of the file, link or empty folder that is there; never through a link.
 * @param beside where it is made first, on the same disk. What is there is removed
 */
export async function placeFile(
  path: string | Buffer,
  beside: string | Buffer,
  entry: NewFile | NewLink,
): Promise<void> {
  await rm(beside, { force: true });
  await make(beside, entry);
  if ((await lstat(path).catch(() => undefined))?.isDirectory() === true) await rmdir(path);
  try {
    await rename(beside, path);
  } catch (error) {
    await rm(beside, { force: true });
    // A folder in which another disk is mounted: its files cannot be exchanged from outside.
    if ((error as NodeJS.ErrnoException).code !== "EXDEV") throw error;
    await rm(path, { force: true });
    await make(path, entry);
  }
}

async function make(path: string | Buffer, entry: NewFile | NewLink): Promise<void> {
  if (entry.kind === "link") return symlink(entry.target, path);
  await writeFile(path, entry.bytes, { mode: entry.mode, flag: "wx" });
  if (entry.mtimeMs !== undefined) await utimes(path, new Date(), new Date(entry.mtimeMs));
}
