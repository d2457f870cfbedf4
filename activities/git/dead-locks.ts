/** Locks that git left in one of our own repositories because it was killed. Whoever works in one says so in it, before any git begins. */
import { randomUUID } from "node:crypto";
import { readdir, readFile, readlink, realpath, rm, stat, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";

/** Where git makes locks; the folders of single objects have none. */
const PLACES = ["refs", "objects/info", "objects/pack", "logs"];
const RECORD = "longhaul-at-work-";
/** Longer than any work in a repository: its gits may take half an hour each. Source: ours. */
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
    PLACES.map(async (place) => {
      const found = await readdir(join(folder, place), { recursive: true }).catch(() => []);
      return found.map((name) => join(place, name));
    }),
  );
  const locks = [...names, ...below.flat()].filter((name) => name.endsWith(".lock"));
  if (locks.length === 0 || (await isInUse(folder))) return;
  for (const name of locks) {
    const path = join(folder, name);
    const found = await stat(path).catch(() => undefined);
    if (found?.isFile() === true) await rm(path, { force: true });
  }
}

/** Whether another process works in the folder, or may; removes the records of the dead. */
export async function isInUse(folder: string): Promise<boolean> {
  return (await isRecorded(folder)) || (await isSeen(folder));
}

async function isRecorded(folder: string): Promise<boolean> {
  const own = await self();
  const names = await readdir(folder).catch(() => []);
  let found = false;
  for (const name of names.filter((one) => one.startsWith(RECORD))) {
    const file = join(folder, name);
    const worker = await readRecord(file);
    if (worker?.place === own.place && worker.pid === own.pid && worker.born === own.born) continue;
    if (worker !== undefined && (await mayLive(worker, own, file))) found = true;
    else await rm(file, { force: true });
  }
  return found;
}

async function mayLive(worker: Worker, own: Worker, file: string): Promise<boolean> {
  if (worker.place === own.place) return worker.born === (await birthOf(worker.pid));
  const said = await stat(file).catch(() => undefined);
  return said !== undefined && Date.now() - said.mtimeMs < LONGEST_MS;
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
