/** `.longhaul` is private to its owner: it contains a database's password, logs, and the history of every task. */
import { chmodSync, lstatSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";

export const PRIVATE_FOLDER = 0o700;
export const PRIVATE_FILE = 0o600;

/** Creates the folder and its log folder, or restricts permissions that an earlier version left open. */
export function makePrivate(home: string): void {
  for (const folder of [home, join(home, "logs")]) {
    mkdirSync(folder, { recursive: true, mode: PRIVATE_FOLDER });
    if (isOurs(folder)) chmodSync(folder, PRIVATE_FOLDER);
    for (const name of readdirSync(folder)) {
      const path = join(folder, name);
      if (isOurs(path) && lstatSync(path).isFile()) chmodSync(path, PRIVATE_FILE);
    }
  }
}

function isOurs(path: string): boolean {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  return stat !== undefined && stat.uid === (process.getuid?.() ?? stat.uid);
}
