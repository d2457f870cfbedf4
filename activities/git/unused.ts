/** Repositories of the worker that nothing has used for long. */
import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { inTurn } from "../sandbox/shared-work.ts";
import type { GitAccess } from "./git-access.ts";

/**
 * A repository of ours that is unused for so long is removed. A relay is recreated from the session's files: what is lost are commits that a
 * reset abandoned. A mirror, with its files of Git LFS, is cloned again. Source: ours, thirty days as Git keeps what nothing refers to.
 */
const UNUSED_MS = 30 * 24 * 3_600_000;

const KINDS = [
  ["relays", "relay"],
  ["mirrors", "clone"],
] as const;

/** @returns a line for each that was removed */
export async function removeUnusedRepositories(
  { folder }: Pick<GitAccess, "folder">,
  now: Date = new Date(),
): Promise<string[]> {
  const removed: string[] = [];
  for (const [parent, kind] of KINDS) {
    for (const name of await readdir(join(folder, parent)).catch(() => [])) {
      const path = join(folder, parent, name);
      await inTurn(path, async () => {
        // Each bundle that comes into a relay is a file of the folder for a moment; a mirror is marked by who uses it.
        const found = await stat(path).catch(() => undefined);
        if (found === undefined || now.getTime() - found.mtimeMs < UNUSED_MS) return;
        await rm(path, { recursive: true, force: true });
        removed.push(`removed the ${kind} ${name}, unused since ${found.mtime.toISOString()}`);
      });
    }
  }
  return removed;
}
