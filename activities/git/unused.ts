/** Removes the worker's repositories that have not been used for long. */
import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { inTurn } from "../sandbox/shared-work.ts";
import type { GitAccess } from "./git-access.ts";

/**
 * After this time an unused repository is removed. A relay is recreated from the session's files: only commits that a reset
 * abandoned are lost. A mirror is cloned again, with its Git LFS files. Source: ours, the thirty days of Git's own clean-up.
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
        // Receiving a bundle puts a file into a relay's folder, which sets its time; each use of a mirror sets the mirror's.
        const found = await stat(path).catch(() => undefined);
        if (found === undefined || now.getTime() - found.mtimeMs < UNUSED_MS) return;
        await rm(path, { recursive: true, force: true });
        removed.push(`removed the ${kind} ${name}, unused since ${found.mtime.toISOString()}`);
      });
    }
  }
  return removed;
}
