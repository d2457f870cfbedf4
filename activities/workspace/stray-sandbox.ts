/** Whether a sandbox with a session's name has the session's files; removes one that does not. */
import type { SandboxHost } from "../sandbox/sandbox-host.ts";
import type { Queryable } from "../store/db.ts";
import { findSandbox, type SandboxRow } from "../store/sandboxes.ts";

/** Whether this host has the session's newest files, some of which may be in no save. */
export async function hasFiles(row: SandboxRow | undefined, host: SandboxHost): Promise<boolean> {
  return row !== undefined && row.closedRun === null && row.volume === (await host.volume(row.sessionId));
}

/**
 * Removes a sandbox that has the session's name but not its files: from before the session moved to another host, or one whose
 * opening failed. Call it under the session's lock, under which sandboxes are created and recorded.
 */
export async function removeStray(tx: Queryable, host: SandboxHost, sessionId: string): Promise<boolean> {
  const volume = await host.volume(sessionId);
  if (volume === undefined || volume === (await findSandbox(tx, sessionId))?.volume) return false;
  await host.remove(sessionId);
  return true;
}
