/** Sandboxes that are stopped and kept while a session waits or has ended: for how long, what they take, and what their loss means. */
import { rethrowIfCancelled } from "../contract/failures.ts";
import type { WorkspaceDeps } from "../runtime/deps.ts";
import type { SandboxHost } from "../sandbox/sandbox-host.ts";
import { type Sandbox, SandboxLost } from "../sandbox/sandbox.ts";
import type { Queryable } from "../store/db.ts";
import { addNotice, markUnparked, mendNotice, type SandboxRow } from "../store/sandboxes.ts";
import type { Session } from "../store/sessions.ts";
import { installCommands } from "../store/tool-calls.ts";
import { REBUILT_FOLDERS } from "../store/workspace-manifest.ts";
import { shorten } from "../text/cut.ts";
import { andMore, takeFirst } from "../text/lists.ts";
import { countWorkspace } from "./workspace.ts";

/**
 * How long the session's stopped sandbox is kept, in ms; 0: it is removed. A delegate's files are its parent's by then, and another
 * person's container is never ours to stop.
 */
export function parkedMs(
  { sandboxHost }: Pick<WorkspaceDeps, "sandboxHost">,
  { config: { sandbox }, parentId }: Session,
): number {
  if (sandboxHost.park === undefined || parentId !== undefined || sandbox.container !== undefined) return 0;
  return sandbox.park.keep;
}

/** Whether this host keeps the session's stopped sandbox, with the files of the last save and what was installed. */
export async function isParkedHere(row: SandboxRow | undefined, host: SandboxHost): Promise<boolean> {
  return row?.parkedUntil != null && row.volume === (await host.volume(row.sessionId));
}

/**
 * What a sandbox takes on the disk if it is stopped and kept now: its own part of the workspace, and what else it wrote.
 * @returns undefined if it could not be counted: then it counts as nothing
 * @throws SandboxLost
 */
export async function countKept(
  host: SandboxHost,
  sandbox: Sandbox,
  sessionId: string,
): Promise<number | undefined> {
  try {
    const [workspace, own = 0] = await Promise.all([countWorkspace(sandbox), host.ownBytes?.(sessionId)]);
    return workspace + own;
  } catch (error) {
    rethrowIfCancelled(error);
    if (error instanceof SandboxLost) throw error;
    return undefined;
  }
}

/**
 * Removes a stopped sandbox before its session goes on, and tells the model what is gone with it. To be called under the session's
 * lock, for one whose files are saved.
 * @param why it is removed, for people and the model
 */
export async function giveUpParked(
  tx: Queryable,
  host: SandboxHost,
  { sessionId }: Pick<SandboxRow, "sessionId">,
  why: string,
): Promise<void> {
  await markUnparked(tx, sessionId, why);
  await takeBackKept(tx, sessionId);
  await addNotice(
    tx,
    sessionId,
    `[The sandbox was kept stopped, and was removed ${why}. ${await goneWords(tx, sessionId, false)}]`,
  );
  await host.remove(sessionId, { keeps: "service-data" });
}

const MAX_NAMED = 20;
/** What a waiting session's model is told of a sandbox that is kept; taken back if it is not. */
const KEPT = "was saved and stopped, and is started again: its files and what was installed are there.";

const takeBackKept = (tx: Queryable, sessionId: string) =>
  mendNotice(tx, sessionId, KEPT, "was saved and stopped.");

/** The notice for the model of a session that waits, which may have left commands running. */
export async function parkedNotice(sandbox: Sandbox, isKept: boolean): Promise<string> {
  const running = (await sandbox.list()).filter(({ kind }) => kind === "running").map(({ id }) => id);
  const { shown, more } = takeFirst(running, MAX_NAMED);
  const commands =
    running.length === 0
      ? ""
      : ` Background commands that were running: ${shown.join(", ")}${andMore(more)}.`;
  if (isKept)
    return `[While the session waited, the sandbox ${KEPT} Running processes are gone.${commands} Start again what you need.]`;
  return (
    "[While the session waited, the sandbox was saved and removed, and is recreated from the save. " +
    `Gone are running processes, everything outside /workspace, and folders named ${REBUILT_FOLDERS.join(", ")}.${commands} Recreate what you need.]`
  );
}

/** What the model must know if the sandbox that was kept is gone, or only its volume is there; undefined if it is there. */
export async function lostNotice(
  tx: Queryable,
  before: SandboxRow,
  now: Pick<Sandbox["identity"], "volume" | "container">,
): Promise<string | undefined> {
  if (before.parkedUntil === null || before.container === now.container) return undefined;
  await takeBackKept(tx, before.sessionId);
  const gone = await goneWords(tx, before.sessionId, before.volume === now.volume);
  return `[The sandbox was kept stopped, and is not there any more. ${gone}]`;
}

const MAX_COMMAND_CHARS = 200;
const MAX_COMMANDS = 8;

async function goneWords(tx: Queryable, sessionId: string, isOnVolume: boolean): Promise<string> {
  const gone = isOnVolume
    ? "What was installed outside /workspace is gone"
    : `The files are those of the last save; what was installed is gone: folders named ${REBUILT_FOLDERS.join(", ")}, and everything outside /workspace`;
  const commands = await installCommands(tx, sessionId, MAX_COMMANDS);
  const listed = commands.map(
    ({ step, command }) => `\`${shorten(command, MAX_COMMAND_CHARS)}\` (step ${step})`,
  );
  const again =
    listed.length === 0 ? "" : ` Commands of yours that installed something: ${listed.join(", ")}.`;
  return `${gone}.${again}`;
}
