/** Makes our own repositories on the worker's disk: under another name, then renamed, so that half of one is never used. */
import { createHash, randomUUID } from "node:crypto";
import { mkdir, readdir, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";

/** Paths that this process is making now. */
const making = new Set<string>();

/** Names on disk reveal no address, and stay short. */
export const folderOf = (name: string): string =>
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
