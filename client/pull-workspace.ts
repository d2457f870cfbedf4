/** A session's files on the person's own disk: nothing leaves the folder, whatever the sandbox made of paths and links. */
import { lstat, mkdir, readdir, readFile, rename, rm, symlink, utimes, writeFile } from "node:fs/promises";
import { dirname, isAbsolute, join, resolve, sep } from "node:path";
import type { WorkspaceFile } from "../activities/sandbox/workspace-pack.ts";
import { readWorkspace } from "../activities/store/checkpoints.ts";
import type { Store } from "../activities/store/db.ts";
import { notPossible } from "./errors.ts";

export interface Pulled {
  readonly files: number;
  /** Links that point out of the folder, left out. */
  readonly skipped: readonly string[];
}

export interface PullOptions {
  /** The folder is ours: what is in it from an earlier pull is replaced. */
  readonly ours?: boolean;
  /** Write over files that are there. */
  readonly force?: boolean;
}

/**
 * Writes the session's files into a folder, which is made where it is missing.
 * @returns undefined where nothing was ever saved
 * @throws ClientError (impossible) when the folder holds other files
 */
export async function pullWorkspace(
  store: Store,
  sessionId: string,
  folder: string,
  options: PullOptions = {},
): Promise<Pulled | undefined> {
  const files = await readWorkspace(store.db, sessionId);
  if (files === undefined) return undefined;
  const target = resolve(folder);
  if (options.ours) return replaceFolder(target, files);
  if (!options.force) await refuseOverwriting(target, files);
  await mkdir(target, { recursive: true });
  return writeFiles(target, files);
}

/** The new content takes the old one's place only once it is whole. */
async function replaceFolder(target: string, files: readonly WorkspaceFile[]): Promise<Pulled> {
  const fresh = `${target}.new-${process.pid}`;
  await mkdir(fresh, { recursive: true });
  const pulled = await writeFiles(fresh, files);
  await rm(target, { recursive: true, force: true });
  await rename(fresh, target);
  return pulled;
}

/** Files that are there with the same content are no obstacle: a second pull of the same state does no harm. */
async function refuseOverwriting(target: string, files: readonly WorkspaceFile[]): Promise<void> {
  if ((await readdir(target).catch(() => [])).length === 0) return;
  for (const file of files) {
    if (file.kind === "folder") continue;
    const path = join(target, file.path);
    const there = await lstat(path).catch(() => undefined);
    if (there === undefined) continue;
    const same =
      file.kind === "file" &&
      there.isFile() &&
      Buffer.from(file.bytes).equals(await readFile(path).catch(() => Buffer.of()));
    if (!same) {
      throw notPossible(
        `${path} is there already and differs: nothing was written.`,
        "Name an empty folder, or add --force to write over it.",
      );
    }
  }
}

async function writeFiles(target: string, all: readonly WorkspaceFile[]): Promise<Pulled> {
  // Written as text, two names that are no UTF-8 might become one.
  const isText = (file: WorkspaceFile): boolean =>
    file.path.isWellFormed() && (file.kind !== "link" || file.target.isWellFormed());
  const files = all.filter(isText);
  const skipped = all.filter((file) => !isText(file)).map(({ path }) => path.toWellFormed());
  let count = 0;
  // Links come last: until then no path can lead through one.
  for (const file of files.filter(({ kind }) => kind !== "link")) {
    const path = join(target, file.path);
    await requireNoLink(target, file.kind === "folder" ? path : dirname(path));
    if (file.kind === "folder") {
      await mkdir(path, { recursive: true });
    } else if (file.kind === "file") {
      await mkdir(dirname(path), { recursive: true });
      await rm(path, { force: true });
      await writeFile(path, file.bytes, { mode: file.mode & 0o777, flag: "wx" });
      if (file.mtimeMs !== undefined) await utimes(path, new Date(), new Date(file.mtimeMs));
      count++;
    }
  }
  for (const file of files) {
    if (file.kind !== "link") continue;
    const path = join(target, file.path);
    const end = resolve(dirname(path), file.target);
    if (isAbsolute(file.target) || (end !== target && !end.startsWith(target + sep))) {
      skipped.push(file.path);
      continue;
    }
    await requireNoLink(target, dirname(path));
    await mkdir(dirname(path), { recursive: true });
    await rm(path, { force: true });
    await symlink(file.target, path);
    count++;
  }
  return { files: count, skipped };
}

/** A link that lay in the folder before must not lead a file out of it. */
async function requireNoLink(target: string, folder: string): Promise<void> {
  for (let path = folder; path !== target && path.startsWith(target + sep); path = dirname(path)) {
    const stat = await lstat(path).catch(() => undefined);
    if (stat?.isSymbolicLink()) {
      throw notPossible(`${path} is a link: nothing is written through it.`, "Name an empty folder.");
    }
  }
}
