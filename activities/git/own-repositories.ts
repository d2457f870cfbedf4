/**
 * Our own repositories on the worker's disk: made under another name and renamed, so that half of one is never used; freed of the
 * locks of a git that was killed; removed when they have not been used for long.
 */
import { createHash, randomUUID } from "node:crypto";
import { mkdir, readdir, rename, rm, stat, readFile, readlink, realpath, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { basename, dirname, join } from "node:path";
import { inTurn } from "../sandbox/shared-work.ts";
import type { GitAccess } from "./git-access.ts";

/** Paths that this process is making now. */
const making = new Set<string>();

/** Names on disk reveal no address, and stay short. */
export const toFolderName = (name: string): string =>
  createHash("sha256").update(name).digest("hex").slice(0, 24);

export const exists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  );

/**
 * Makes a folder by `fill`, whole or not at all. What crashed attempts left is removed; if two processes make it at once,
 * the first one's is kept.
 */
export async function makeWhole(folder: string, fill: (path: string) => Promise<void>): Promise<void> {
  await removeLeftovers(folder);
  const path = `${folder}.${process.pid}.${randomUUID().slice(0, 8)}.part`;
  making.add(path);
  try {
    await mkdir(path, { recursive: true });
    await fill(path);
    await rename(path, folder).catch(async (error: unknown) => {
      if (!(await exists(folder))) throw error;
    });
  } finally {
    await rm(path, { recursive: true, force: true });
    making.delete(path);
  }
}

async function removeLeftovers(folder: string): Promise<void> {
  const [parent, name] = [dirname(folder), `${basename(folder)}.`];
  await mkdir(parent, { recursive: true, mode: 0o700 });
  for (const entry of await readdir(parent)) {
    const pid = Number(entry.split(".").at(-3));
    const path = join(parent, entry);
    if (!entry.startsWith(name) || !entry.endsWith(".part") || making.has(path) || isOther(pid)) continue;
    await rm(path, { recursive: true, force: true });
  }
}

/** Whether another living process may be making it. */
function isOther(pid: number): boolean {
  if (pid === process.pid) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** Where git makes locks; the folders of single objects have none. */
const PLACES = ["refs", "objects/info", "objects/pack", "logs"];
const RECORD = "longhaul-at-work-";
/** Chosen: longer than any work in a repository, whose gits may take half an hour each. */
const LONGEST_MS = 3 * 3_600_000;

/** A process, where only those of the same place can see whether it lives. */
interface Worker {
  readonly place: string;
  readonly pid: number;
  readonly born: string;
}

/**
 * Does what makes locks in a repository, without those that the dead left. The caller has the folder's turn in this process. A lock is
 * dead unless a process that lives, or that cannot be seen from here, has said that it works in the folder, or a git is seen in it.
 */
export async function atWork<T>(folder: string, work: () => Promise<T>): Promise<T> {
  const record = join(folder, `${RECORD}${randomUUID()}`);
  await writeFile(record, JSON.stringify(await self()));
  try {
    await removeDeadLocks(folder);
    return await work();
  } finally {
    await rm(record, { force: true });
  }
}

async function removeDeadLocks(folder: string): Promise<void> {
  const names = await readdir(folder).catch(() => []);
  const below = await Promise.all(
    PLACES.map(async (subfolder) => {
      const entries = await readdir(join(folder, subfolder), { recursive: true }).catch(() => []);
      return entries.map((name) => join(subfolder, name));
    }),
  );
  const locks = [...names, ...below.flat()].filter((name) => name.endsWith(".lock"));
  if (locks.length === 0 || (await isInUse(folder))) return;
  for (const name of locks) {
    const path = join(folder, name);
    const stats = await stat(path).catch(() => undefined);
    if (stats?.isFile() === true) await rm(path, { force: true });
  }
}

/** Whether another process works in the folder, or may; removes the records of the dead. */
export async function isInUse(folder: string): Promise<boolean> {
  return (await isRecorded(folder)) || (await isSeen(folder));
}

async function isRecorded(folder: string): Promise<boolean> {
  const own = await self();
  const names = await readdir(folder).catch(() => []);
  let isAlive = false;
  for (const name of names.filter((one) => one.startsWith(RECORD))) {
    const file = join(folder, name);
    const worker = await readRecord(file);
    if (worker?.place === own.place && worker.pid === own.pid && worker.born === own.born) continue;
    if (worker !== undefined && (await mayLive(worker, own, file))) isAlive = true;
    else await rm(file, { force: true });
  }
  return isAlive;
}

async function mayLive(worker: Worker, own: Worker, file: string): Promise<boolean> {
  if (worker.place === own.place) return worker.born === (await birthOf(worker.pid));
  const info = await stat(file).catch(() => undefined);
  return info !== undefined && Date.now() - info.mtimeMs < LONGEST_MS;
}

/** Undefined for one that its process did not finish writing: it had not begun. */
async function readRecord(file: string): Promise<Worker | undefined> {
  try {
    return JSON.parse(await readFile(file, "utf8"));
  } catch {
    return undefined;
  }
}

async function self(): Promise<Worker> {
  const space = await readlink("/proc/self/ns/pid").catch(() => "");
  return {
    place: `${hostname()} ${space}`,
    pid: process.pid,
    born: (await birthOf(process.pid)) ?? "",
  };
}

/** When a process began, by the system's count; undefined if it has ended. Where the system does not tell, all were born alike. */
async function birthOf(pid: number): Promise<string | undefined> {
  const fields = await fieldsOf(String(pid));
  if (fields !== undefined) return fields[19];
  try {
    if (process.platform === "linux") return undefined;
    process.kill(pid, 0);
    return "";
  } catch {
    return undefined;
  }
}

/** What the system says of a process after its name, which may contain anything: the state, the parent, … */
async function fieldsOf(pid: string): Promise<string[] | undefined> {
  const status = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  return status === "" ? undefined : status.slice(status.lastIndexOf(")") + 2).split(" ");
}

/** Whether a process that this one did not start has the folder as its own, as a git does whose worker was killed. */
async function isSeen(folder: string): Promise<boolean> {
  const own = await realpath(folder).catch(() => folder);
  const pids = (await readdir("/proc").catch(() => [])).filter((name) => /^\d+$/.test(name));
  for (const pid of pids) {
    if ((await readlink(`/proc/${pid}/cwd`).catch(() => "")) !== own) continue;
    const fields = await fieldsOf(pid);
    if (fields !== undefined && Number(pid) !== process.pid && Number(fields[1]) !== process.pid) return true;
  }
  return false;
}

/**
 * After this time an unused repository is removed. A relay is recreated from the session's files: only commits that a reset
 * abandoned are lost. A mirror is cloned again, with its Git LFS files. Chosen: the thirty days of Git's own clean-up.
 */
const UNUSED_MS = 30 * 24 * 3_600_000;

const KINDS = [
  ["relays", "relay"],
  ["mirrors", "clone"],
] as const;

/** Removes repositories that have not been used for long. @returns a line for each that was removed */
export async function removeUnusedRepositories(
  { folder }: Pick<GitAccess, "folder">,
  now: Date = new Date(),
): Promise<string[]> {
  const removed: string[] = [];
  for (const [parent, kind] of KINDS) {
    for (const name of await readdir(join(folder, parent)).catch(() => [])) {
      const path = join(folder, parent, name);
      await inTurn(path, async () => {
        // Receiving a bundle puts a file into a relay's folder, which sets its time; each use of a mirror sets the mirror's.
        const stats = await stat(path).catch(() => undefined);
        if (stats === undefined || now.getTime() - stats.mtimeMs < UNUSED_MS) return;
        await rm(path, { recursive: true, force: true });
        removed.push(`removed the ${kind} ${name}, unused since ${stats.mtime.toISOString()}`);
      });
    }
  }
  return removed;
}
