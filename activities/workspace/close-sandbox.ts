/** The end of a session's sandbox: its newest files are saved, and only then is it removed. */
import type { WorkspaceFacts } from "../contract/activities.ts";
import { retryable } from "../contract/failures.ts";
import { addNotice, findSandbox, markClosed, type SandboxRow } from "../store/sandboxes.ts";
import { latestCheckpoint } from "../store/checkpoints.ts";
import type { Queryable } from "../store/db.ts";
import { appendEvents } from "../store/events.ts";
import { clearContainer, lockedSession, type Session } from "../store/sessions.ts";
import { NOTHING_SAVED, saveFiles } from "./save-files.ts";
import {
  hasFiles,
  inCharge,
  lossIn,
  withoutLost,
  type WorkspaceDeps,
  type SessionSandboxes,
} from "./session-sandbox.ts";

/**
 * Saves what is in no checkpoint yet, then removes the sandbox. Idempotent: an attempt that finds the files saved for the
 * last time only removes. Where the save fails, nothing is removed.
 * @param step the newest step of the run; the save is never put behind a checkpoint that is there already
 * @throws Superseded (fatal) where another run has the session; SandboxUnavailable (retryable); SandboxLost
 */
export async function closeSandbox(
  deps: WorkspaceDeps,
  sandboxes: SessionSandboxes,
  session: Session,
  step: number,
): Promise<WorkspaceFacts> {
  const { store, sandboxHost: host } = deps;
  const { id } = session;
  const { saved, isKnown } = await withoutLost(sandboxes, id, async () => {
    const sandbox = await sandboxes.find(session);
    const latest = await latestCheckpoint(store.db, id);
    const facts =
      sandbox === undefined
        ? NOTHING_SAVED
        : await saveFiles(deps, sandbox, session, Math.max(step, latest?.step ?? 0));
    const volume = sandbox?.identity.volume;
    return {
      saved: facts,
      isKnown: await lockedSession(store, id, (tx) => endUse(tx, deps, session, step, volume)),
    };
  });
  sandboxes.forget(id);
  await lockedSession(store, id, async (tx) => {
    const { container } = await inCharge(tx, session);
    try {
      await host.remove(id);
    } catch (error) {
      // There is most likely none: an engine that is away is no reason to keep the run from ending.
      if (!isKnown) return;
      throw error;
    }
    if (container === undefined) return;
    await clearContainer(tx, id);
    await appendEvents(tx, id, session.epoch, [{ type: "sandbox:removed", step, data: { container } }]);
  });
  deps.notifier.wake(id);
  return saved;
}

/**
 * Writes down that the files are saved for the last time. To be committed before anything is removed.
 * @param savedVolume the volume whose files were saved just now
 * @returns whether the run has, or had, a sandbox
 */
async function endUse(
  tx: Queryable,
  deps: WorkspaceDeps,
  session: Session,
  step: number,
  savedVolume: string | undefined,
): Promise<boolean> {
  const { id, runId } = session;
  const { restoreWorkspace } = await inCharge(tx, session);
  const row = await findSandbox(tx, id);
  await markClosed(tx, id, runId);
  if (row === undefined || row.volume === "") return false;
  if (row.closedRun !== null) return row.closedRun === runId;
  // What it has is the abandoned line's.
  if (restoreWorkspace) return true;
  if (!(await hasFiles(row, deps.sandboxHost))) await tellLoss(tx, deps, session, step, row);
  else if (row.volume !== savedVolume)
    throw retryable("SandboxUnavailable", "The sandbox was replaced while it was saved; it is tried again.");
  return true;
}

/** Says what the newest steps wrote that is in no save, where the sandbox is gone. */
async function tellLoss(
  tx: Queryable,
  { sandboxHost: host }: WorkspaceDeps,
  { id, epoch, container = "" }: Session,
  step: number,
  before: SandboxRow,
): Promise<void> {
  const hasCheckpoint = (await latestCheckpoint(tx, id)) !== undefined;
  const now = { host: host.name, volume: "", container: "", boot: "" };
  const loss = await lossIn(tx, id, { before, now, step: step + 1, hasCheckpoint });
  // What goes with every sandbox at the end of a run, such as its processes, is no loss.
  const isLoss = loss.kind === "everything" || (loss.kind === "files" && loss.isUnsaved);
  if (!isLoss) return;
  const notice = loss.kind === "everything" ? `[${loss.message}]` : loss.notice;
  await addNotice(tx, id, notice);
  const data = { container, message: notice.slice(1, -1) };
  await appendEvents(tx, id, epoch, [{ type: "sandbox:lost", step, data }]);
}
