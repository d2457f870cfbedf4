/** What deleted sessions left on this host: sandboxes, images of set-ups, and the repositories through which their commits went out. */
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { SandboxHost } from "../activities/sandbox/sandbox-host.ts";
import type { Store } from "../activities/store/db.ts";
import { deletedHashes, findDeleted } from "../activities/store/delete-session.ts";
import { findSession } from "../activities/store/sessions.ts";
import { withSandboxLock } from "../activities/store/session-locks.ts";

/** Removes a sandbox, unsaved, whose session was deleted. @returns whether there was one */
export async function removeDeleted(store: Store, host: SandboxHost, id: string): Promise<boolean> {
  return withSandboxLock(store, id, async (tx) => {
    // A session of the same id may have been started since.
    if ((await findDeleted(tx, id)) === undefined || (await findSession(tx, id)) !== undefined) return false;
    await host.remove(id);
    return true;
  });
}

/** Removes the images that deleted sessions' set-ups made here. @returns a line for each */
export async function removeDeletedSetUps(
  store: Store,
  { setUps }: Pick<SandboxHost, "setUps">,
): Promise<string[]> {
  const removed: string[] = [];
  for (const id of (await setUps?.makers()) ?? [])
    if ((await findDeleted(store.db, id)) !== undefined && (await findSession(store.db, id)) === undefined)
      removed.push(...((await setUps?.forget(id)) ?? []));
  return removed;
}

/** @param folder where the worker keeps its repositories; it may not exist */
export async function removeDeletedRelays(store: Store, folder: string): Promise<void> {
  const relays = join(folder, "relays");
  const names = await readdir(relays).catch(() => []);
  const hashes = names.filter((name) => /^[0-9a-f]{24}\.git$/.test(name)).map((name) => name.slice(0, 24));
  for (const hash of await deletedHashes(store.db, hashes))
    await rm(join(relays, `${hash}.git`), { recursive: true, force: true });
}
