/** Closes a session's sandbox: saves its newest files, and only then removes it. */
import { hasFiles, inCharge, lossIn, withoutLost, type SessionSandboxes } from "./session-sandbox.ts";
import { countKept, isParkedHere, parkedMs, parkedNotice } from "./parked.ts";
import { freeHostDisk } from "./host-disk.ts";
import type { WorkspaceFacts } from "../contract/activities.ts";
import { retryable } from "../contract/failures.ts";
import {
  addNotice,
  findSandbox,
  markClosed,
  markParked,
  markUnparked,
  PARKED,
  type SandboxRow,
} from "../store/sandboxes.ts";
import { latestCheckpoint } from "../store/checkpoints.ts";
import type { Queryable } from "../store/db.ts";
import { appendEvents } from "../store/events.ts";
import { clearContainer, type Session } from "../store/sessions.ts";
import { withSandboxLock } from "../store/session-locks.ts";
import { NOTHING_SAVED, saveFiles } from "./save-files.ts";
import type { WorkspaceDeps } from "../runtime/deps.ts";

/**
 * Saves what is in no checkpoint yet, then removes the sandbox. Idempotent: an attempt after the last save only removes. If
 * the save fails, nothing is removed.
 * @param end.step the newest step of the run; an existing checkpoint of a later step is never overwritten
 * @param end.mayPark the session may go on: its sandbox is only stopped, if its settings keep it
 * @throws Superseded (fatal) if another run has the session; SandboxUnavailable (retryable); SandboxLost
 */
export function closeSandbox(
  deps: WorkspaceDeps,
  sandboxes: SessionSandboxes,
  session: Session,
  { step, mayPark = false }: { readonly step: number; readonly mayPark?: boolean },
): Promise<WorkspaceFacts> {
  return saveAndRemove(deps, sandboxes, session, { step, isWaiting: false, mayPark });
}

/** As `closeSandbox`, for a run that waits for a person: its next call gets a new sandbox with the saved files. */
export function parkSandbox(
  deps: WorkspaceDeps,
  sandboxes: SessionSandboxes,
  session: Session,
  step: number,
): Promise<WorkspaceFacts> {
  return saveAndRemove(deps, sandboxes, session, { step, isWaiting: true, mayPark: true });
}

async function saveAndRemove(
  deps: WorkspaceDeps,
  sandboxes: SessionSandboxes,
  session: Session,
  {
    step,
    isWaiting,
    mayPark,
  }: { readonly step: number; readonly isWaiting: boolean; readonly mayPark: boolean },
): Promise<WorkspaceFacts> {
  const { store } = deps;
  const { id } = session;
  const keptMs = mayPark ? parkedMs(deps, session) : 0;
  const { saved, isKnown } = await withoutLost(sandboxes, id, async () => {
    const sandbox = await sandboxes.find(session);
    const latest = await latestCheckpoint(store.db, id);
    const facts =
      sandbox === undefined
        ? NOTHING_SAVED
        : await saveFiles(deps, sandbox, session, Math.max(step, latest?.step ?? 0));
    const notice = isWaiting && sandbox !== undefined ? await parkedNotice(sandbox, keptMs > 0) : undefined;
    const bytes =
      keptMs > 0 && sandbox !== undefined ? await countKept(deps.sandboxHost, sandbox, id) : undefined;
    const by = isWaiting ? PARKED : (session.runId ?? "");
    const use = { step, by, savedVolume: sandbox?.identity.volume, notice };
    return {
      saved: facts,
      isKnown: await withSandboxLock(store, id, async (tx) => {
        const wasUsed = await endUse(tx, deps, session, use);
        // With the save: whoever finds it from now on, running or stopped, finds one that is kept.
        if (keptMs > 0 && sandbox !== undefined) await markParked(tx, id, { keptMs, bytes });
        return wasUsed;
      }),
    };
  });
  sandboxes.forget(id);
  const isKept = await withSandboxLock(store, id, (tx) =>
    endSandbox(tx, deps, session, { step, isWaiting, isKnown, keeps: keptMs > 0 }),
  );
  if (isKept) await freeHostDisk(deps, {});
  return saved;
}

/** Stops a sandbox that is kept, and removes any other. @returns whether it is kept */
async function endSandbox(
  tx: Queryable,
  { sandboxHost: host }: WorkspaceDeps,
  session: Session,
  { step, isWaiting, isKnown, keeps }: { step: number; isWaiting: boolean; isKnown: boolean; keeps: boolean },
): Promise<boolean> {
  const { id } = session;
  const { container } = await inCharge(tx, session);
  const row = await findSandbox(tx, id);
  let until: string | undefined;
  try {
    // An earlier end may have kept one that this end keeps no more, as a cancel during a wait.
    if (
      keeps &&
      row?.parkedUntil != null &&
      (await isParkedHere(row, host)) &&
      (await host.park?.(id)) === true
    )
      until = row.parkedUntil.toISOString();
    else {
      await markUnparked(tx, id);
      await host.remove(id, isWaiting ? { keeps: "service-data" } : {});
    }
  } catch (error) {
    // There is probably none: an unreachable engine must not keep the run from ending.
    if (!isKnown) return false;
    throw error;
  }
  if (container === undefined) return until !== undefined;
  await clearContainer(tx, id);
  await appendEvents(tx, id, session.epoch, [
    until === undefined
      ? { type: endOf(session, isWaiting), step, data: { container } }
      : { type: "sandbox:parked", step, data: { container, until } },
  ]);
  return until !== undefined;
}

function endOf({ config }: Session, isWaiting: boolean) {
  // Another person's container is never removed.
  if (config.sandbox.container !== undefined) return "sandbox:left";
  return isWaiting ? "sandbox:parked" : "sandbox:removed";
}

interface Use {
  readonly step: number;
  /** The caller that ends the sandbox's use. */
  readonly by: string;
  /** The volume whose files were just saved. */
  readonly savedVolume: string | undefined;
  /** Notice for the model. */
  readonly notice: string | undefined;
}

/**
 * Records that the files were saved for the last time. Must be committed before anything is removed.
 * @returns whether the run has, or had, a sandbox
 */
async function endUse(
  tx: Queryable,
  deps: WorkspaceDeps,
  session: Session,
  { step, by, savedVolume, notice }: Use,
): Promise<boolean> {
  const { id } = session;
  const { restoreWorkspace } = await inCharge(tx, session);
  const row = await findSandbox(tx, id);
  await markClosed(tx, id, by);
  if (row === undefined || row.volume === "") return false;
  if (row.closedRun !== null) return row.closedRun === by;
  // Its files belong to abandoned steps.
  if (restoreWorkspace) return true;
  if (!(await hasFiles(row, deps.sandboxHost))) await reportLoss(tx, deps, session, { step, before: row });
  else if (row.volume !== savedVolume)
    throw retryable(
      "SandboxUnavailable",
      "The sandbox was replaced while it was saved; the save will be retried.",
    );
  else if (notice !== undefined) await addNotice(tx, id, notice);
  return true;
}

/** If the sandbox is gone, reports the changes of the newest steps that are in no save. */
async function reportLoss(
  tx: Queryable,
  { sandboxHost: host }: WorkspaceDeps,
  { id, epoch, container = "" }: Session,
  { step, before }: { readonly step: number; readonly before: SandboxRow },
): Promise<void> {
  const hasCheckpoint = (await latestCheckpoint(tx, id)) !== undefined;
  const now = { host: host.name, volume: "", container: "", boot: "" };
  const loss = await lossIn(tx, id, { before, now, step: step + 1, hasCheckpoint });
  // Every sandbox ends with its run, so ended processes are not a loss.
  const isLoss = loss.kind === "everything" || (loss.kind === "files" && loss.isUnsaved);
  if (!isLoss) return;
  const notice = loss.kind === "everything" ? `[${loss.message}]` : loss.notice;
  await addNotice(tx, id, notice);
  const data = { container, message: notice.slice(1, -1) };
  await appendEvents(tx, id, epoch, [{ type: "sandbox:lost", step, data }]);
}
