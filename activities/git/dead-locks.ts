/** Locks that git left in one of our own repositories because it was killed. */
import { readdir, readFile, readlink, realpath, rm, stat } from "node:fs/promises";
import { join } from "node:path";

/** In the past, for files that this process or its children made. */
const STARTED_MS = performance.timeOrigin;
/** Where git makes locks; the folders of single objects have none. */
const PLACES = ["refs", "objects/info", "objects/pack", "logs"];

/**
 * Removes locks that are older than this process, unless a git of another living process works in the folder. The caller has the
 * folder's turn, so none of this process does.
 */
export async function removeDeadLocks(folder: string): Promise<void> {
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
    if (found?.isFile() === true && found.mtimeMs < STARTED_MS) await rm(path, { force: true });
  }
}

/** Whether a process that this one did not start has the folder as its own; false where the system does not tell. */
export async function isInUse(folder: string): Promise<boolean> {
  const own = await realpath(folder).catch(() => folder);
  const pids = (await readdir("/proc").catch(() => [])).filter((name) => /^\d+$/.test(name));
  for (const pid of pids) {
    if ((await readlink(`/proc/${pid}/cwd`).catch(() => "")) !== own) continue;
    // After the name, which may contain anything: the state, and the parent.
    const status = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
    const parent = Number(status.slice(status.lastIndexOf(")") + 2).split(" ")[1]);
    if (Number(pid) !== process.pid && parent !== process.pid && status !== "") return true;
  }
  return false;
}
