/** The sandbox of a session: opened on first use, with its files restored, once for all callers. A stray one has its name, but not its files. */
import { whileFilled } from "../config/review-settings.ts";
import { ApplicationFailure } from "@temporalio/common";
import { refuseLostSaves } from "../runtime/counted-saves.ts";
import { toSandboxLoss, unsavedAtReset, type SandboxChange, type SandboxLoss } from "./sandbox-loss.ts";
import type { WorkspaceDeps } from "../runtime/deps.ts";
import { fatal, rowsGone } from "../contract/failures.ts";
import { type Sandbox, SandboxLost } from "../sandbox/sandbox.ts";
import { openBase } from "./base.ts";
import { isParkedHere, lostNotice } from "./parked.ts";
import { allowListed, keyGone } from "./egress.ts";
import { sandboxSpec, type SandboxHost } from "../sandbox/sandbox-host.ts";
import { reportNotRestored } from "./left-out.ts";
import { restoreWorkspace, endingWith } from "./workspace.ts";
import type { CommandSandbox } from "../sandbox/own-command.ts";
import { REBUILT_FOLDERS } from "../store/workspace-manifest.ts";
import { abortable, shareWork, type SharedWork } from "../sandbox/shared-work.ts";
import {
  addNotice,
  findSandbox,
  isCurrentSandbox,
  lastChangingStep,
  recordSandbox,
  setNotice,
  type SandboxRow,
} from "../store/sandboxes.ts";
import {
  type Checkpoint,
  checkpointChain,
  differenceChain,
  latestCheckpoint,
  retimeCheckpoint,
} from "../store/checkpoints.ts";
import type { Queryable } from "../store/db.ts";
import type { NewEvent } from "../store/event.ts";
import { appendEvents } from "../store/events.ts";
import { findRepository } from "../store/repositories.ts";
import { findSession, setContainer, type Session } from "../store/sessions.ts";
import { withSandboxLock } from "../store/session-locks.ts";

interface OpenSandbox {
  readonly sandbox: Sandbox;
  readonly workspace: "adopted" | "restored" | "empty";
}

export type SessionSandboxes = ReturnType<typeof createSessionSandboxes>;

interface Entry {
  readonly runId: string | undefined;
  readonly work: SharedWork<OpenSandbox>;
  /** Set once it is open. */
  sandbox: Sandbox | undefined;
}

export function createSessionSandboxes(deps: WorkspaceDeps) {
  const { db } = deps.store;
  const entries = new Map<string, Entry>();

  /** Another worker may have replaced or removed the sandbox that this one has open: the row names the current one. */
  async function current(session: Session): Promise<Sandbox | undefined> {
    const entry = entries.get(session.id);
    if (entry?.sandbox === undefined) return undefined;
    if (await isCurrentSandbox(db, session, entry.sandbox.identity)) return entry.sandbox;
    if (entries.get(session.id) === entry) entries.delete(session.id);
    return undefined;
  }

  function startOpening(session: Session, step: number): Entry {
    const work = shareWork(async (signal) => {
      const opened = await openLocked(deps, session, step, signal);
      entry.sandbox = opened.sandbox;
      return opened;
    });
    const entry: Entry = { runId: session.runId, work, sandbox: undefined };
    entries.set(session.id, entry);
    void work.over.then(() => {
      if (entry.sandbox === undefined && entries.get(session.id) === entry) entries.delete(session.id);
    });
    return entry;
  }

  return {
    /**
     * Opens the sandbox, or returns the open one if the session's row still names it. After a reset it is replaced, so that
     * no process of abandoned steps continues; its files are those of the newest live checkpoint.
     * @param signal ends this caller's waiting at once; the opening itself is aborted when no caller waits for it
     * @throws Superseded (fatal) if another run has the session, or this run has closed its sandbox; PoisonedSession (fatal)
     */
    async open(session: Session, step: number, signal?: AbortSignal): Promise<OpenSandbox> {
      const sandbox = await abortable(current(session), signal);
      if (sandbox !== undefined) return { sandbox, workspace: "adopted" };
      const entry = entries.get(session.id);
      const isJoinable = entry !== undefined && entry.runId === session.runId && entry.work.canJoin;
      return (isJoinable ? entry : startOpening(session, step)).work.join(signal);
    },
    /**
     * The sandbox that has the session's files, for saving them: creates no workspace and restores nothing.
     * @returns undefined if it is not on this host, was saved for the last time, or has the files of abandoned steps
     * @throws Superseded (fatal) if another run has the session
     */
    find: async (session: Session): Promise<Sandbox | undefined> =>
      (await current(session)) ??
      withSandboxLock(deps.store, session.id, async (tx) => {
        const { config, restoreWorkspace } = await inCharge(tx, session);
        if (restoreWorkspace) return undefined;
        const row = await findSandbox(tx, session.id);
        if (!(await hasFiles(row, deps.sandboxHost))) return undefined;
        return deps.sandboxHost.open(sandboxSpec({ ...session, config }, row?.baseKey));
      }),
    /** The sandbox if this worker has it open, and it is still the session's. */
    opened: current,
    /** Forgets a sandbox that is gone, so that the next `open` looks for it again. */
    forget(sessionId: string): void {
      entries.delete(sessionId);
    },
  };
}

/** Runs `body` and forgets the sandbox when it turns out to be lost or must not be used any more. */
export async function withoutLost<T>(
  sandboxes: SessionSandboxes,
  sessionId: string,
  body: () => Promise<T>,
): Promise<T> {
  try {
    return await body();
  } catch (error) {
    if (error instanceof SandboxLost || isPoisoned(error)) sandboxes.forget(sessionId);
    throw error;
  }
}

const isPoisoned = (error: unknown): boolean =>
  error instanceof ApplicationFailure && error.type === "PoisonedSession";

/** The session's row, if this run still owns it. @throws Superseded (fatal), RecordMissing (retryable) */
export async function inCharge(tx: Queryable, { id, runId }: Session): Promise<Session> {
  const session = await findSession(tx, id);
  if (!session) throw rowsGone("the sandbox was left as it is");
  if (session.runId !== runId)
    throw fatal("Superseded", `A newer run has claimed session ${id}; its sandbox was left as it is.`);
  return session;
}

// One opener at a time over all workers: two would restore into one workspace. All on one connection: openers that each waited
// for a second one could exhaust the pool and deadlock.
async function openLocked(
  deps: WorkspaceDeps,
  session: Session,
  step: number,
  signal: AbortSignal,
): Promise<OpenSandbox> {
  const { store, sandboxHost } = deps;
  try {
    return await withSandboxLock(store, session.id, (tx) =>
      openIn(tx, { deps, caller: session, step, signal }),
    );
  } catch (error) {
    // If this fails, the next opening, the run's end or the reaper removes it.
    await withSandboxLock(store, session.id, (tx) => removeStray(tx, sandboxHost, session.id)).catch(
      () => undefined,
    );
    // The transaction rolled the notice back; a run that continues with the remaining files needs it.
    if (error instanceof ApplicationFailure && error.type === "WorkspaceLost")
      await setNotice(store.db, session.id, `[${error.message}]`);
    throw error;
  }
}

interface Opening {
  readonly deps: WorkspaceDeps;
  readonly caller: Session;
  readonly step: number;
  readonly signal: AbortSignal;
}

async function openIn(tx: Queryable, { deps, caller, step, signal }: Opening): Promise<OpenSandbox> {
  const { sandboxHost: host } = deps;
  const { id } = caller;
  signal.throwIfAborted();
  const session = await inCharge(tx, caller);
  const before = await findSandbox(tx, id);
  refuseToOpen(session, before);
  if (session.restoreWorkspace) await host.remove(id, { keeps: "service-data" });
  else await removeStray(tx, host, id);
  // A workspace that is to be read-only is writable until its repository is checked out.
  const isAwaited = session.config.repository !== undefined && !(await findRepository(tx, id));
  const { config } = session;
  const checkpoint = await latestCheckpoint(tx, id);
  const hasOwn =
    !session.restoreWorkspace && ((await hasFiles(before, host)) || (await isParkedHere(before, host)));
  const base = await openBase(tx, deps, session, { before: hasOwn ? before : undefined, checkpoint, signal });
  const spec = sandboxSpec({ ...session, config: isAwaited ? whileFilled(config) : config }, base);
  const { readOnly, ...writable } = spec;
  // A read-only workspace gets its files while it is still writable.
  const isFilled = readOnly !== true || hasOwn;
  let sandbox = await host.open(isFilled ? spec : writable, signal);
  await allowListed(tx, session, sandbox);
  // Files in another person's container are not touched.
  const isOurs = spec.container === undefined;
  const notices = await lossNotices(tx, session, {
    before,
    now: sandbox.identity,
    step,
    hasCheckpoint: checkpoint !== undefined,
    isOurs,
  });
  // An empty workspace proves nothing: a tool may have emptied it.
  const isSame = before?.volume === sandbox.identity.volume && !session.restoreWorkspace;
  const filled = checkpoint ? "restored" : "empty";
  const workspace = isSame || !isOurs ? "adopted" : filled;
  const restored =
    !isSame && isOurs && checkpoint
      ? await restoreFrom(tx, endingWith(signal, sandbox), checkpoint, base)
      : undefined;
  if (!isFilled) sandbox = await host.open(spec, signal);
  // Saves lock the session's row first too: the other order would deadlock with them.
  await setContainer(tx, id, sandbox.container);
  await recordSandbox(tx, id, {
    ...sandbox.identity,
    taskQueue: deps.taskQueues.sandbox,
    // The loss is reported below: from here on these files count.
    savedStep: isSame ? undefined : Math.max(0, step - 1),
  });
  for (const notice of notices) await addNotice(tx, id, notice);
  const notRestored = await reportNotRestored(tx, { id, step }, restored);
  await appendEvents(tx, id, session.epoch, [
    ...notices.map((notice): NewEvent => {
      const data = { container: sandbox.container, message: notice.slice(1, -1) };
      return { type: "sandbox:lost", step, data };
    }),
    openedEvent(sandbox, { step, config: session.config, before }, isSame ? undefined : workspace),
    ...(sandbox.lackingKeys ?? []).map((key) => keyGone(step, key)),
    ...notRestored,
  ]);
  return { sandbox, workspace };
}

/** @throws Superseded (fatal), PoisonedSession (fatal) */
function refuseToOpen({ id, status, runId }: Session, before: SandboxRow | undefined): void {
  // An attempt of a worker that was suspended until the run ended: its sandbox would belong to no run.
  if (status !== "active" && status !== "waiting")
    throw fatal("Superseded", `Session ${id} has already ended; no sandbox was created.`);
  if (before !== undefined && before.closedRun === runId)
    throw fatal("Superseded", `This run of session ${id} has closed its sandbox; none was created.`);
  if (before !== undefined) refuseLostSaves(before);
}

interface OpenedChange extends Pick<SandboxChange, "now" | "step" | "hasCheckpoint"> {
  readonly before: SandboxRow | undefined;
  /** Not another person's container. */
  readonly isOurs: boolean;
}

/** What the model must know of files and processes that are gone. @throws WorkspaceLost (fatal) if all files are */
async function lossNotices(
  tx: Queryable,
  { id, restoreWorkspace: isReset }: Session,
  { before, isOurs, ...change }: OpenedChange,
): Promise<string[]> {
  const { step } = change;
  const loss =
    before === undefined || before.closedRun !== null || isReset
      ? undefined
      : await lossIn(tx, id, { before, ...change });
  const unsaved =
    isReset && before?.closedRun === null
      ? unsavedAtReset({ before, step, lastChangingStep: await lastChangingStep(tx, id) })
      : undefined;
  if (loss?.kind === "everything") throw fatal("WorkspaceLost", loss.message);
  const lossNotice = loss !== undefined && "notice" in loss ? loss.notice : undefined;
  const parked = before === undefined || isReset ? undefined : await lostNotice(tx, before, change.now);
  return [lossNotice, parked, !isOurs && isReset ? NOT_SET_BACK : unsaved].filter(
    (notice) => notice !== undefined,
  );
}

/** @param workspace what its files are; undefined if the sandbox is the one that the session had */
function openedEvent(
  sandbox: Sandbox,
  { step, config, before }: Pick<Session, "config"> & Pick<OpenedChange, "step" | "before">,
  workspace: OpenSandbox["workspace"] | undefined,
): NewEvent {
  const { container, network, gaps = [] } = sandbox;
  const wasParked = before?.parkedUntil != null && before.container === sandbox.identity.container;
  if (workspace === undefined)
    return {
      type: "sandbox:adopted",
      step,
      data: { container, network, parked: wasParked ? (true as const) : undefined },
    };
  const unenforced = gaps.length === 0 ? {} : { gaps };
  const { allow } = config.sandbox;
  const own = config.repository === undefined ? undefined : ("copy" as const);
  const layers = sandbox.identity.base === undefined ? own : ("overlay" as const);
  const opened = allow.length > 0 && network.reach !== "none" ? { allow } : {};
  const data = { container, workspace, network, ...opened, ...imageOf(sandbox), layers, ...unenforced };
  return { type: "sandbox:created", step, data };
}

/** For the model, after a reset. */
const NOT_SET_BACK =
  "[You work in the user's own container. Its files were not restored: they are as the later steps left them. Processes that you started are gone.]";

/** What is lost if the session's sandbox was `before` and is `now`. */
export async function lossIn(
  tx: Queryable,
  sessionId: string,
  change: Pick<SandboxChange, "now" | "step" | "hasCheckpoint"> & { readonly before: SandboxRow },
): Promise<SandboxLoss> {
  return toSandboxLoss({
    ...change,
    lastChangingStep: await lastChangingStep(tx, sessionId),
    unsavedFolders: REBUILT_FOLDERS,
  });
}

async function restoreFrom(
  tx: Queryable,
  sandbox: CommandSandbox,
  { id, baseKey }: Checkpoint,
  base: string | undefined,
) {
  const isOnBase = base !== undefined;
  const chain = await (isOnBase ? differenceChain : checkpointChain)(tx, id);
  const restored = await restoreWorkspace(sandbox, chain);
  // The list of a whole workspace is not that of a difference.
  if (isOnBase === (baseKey !== null)) await retimeCheckpoint(tx, id, restored.manifest);
  return restored;
}

const imageOf = ({ identity: { image } }: Sandbox) => (image === undefined ? {} : { image });

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
  await host.remove(sessionId, { keeps: "service-data" });
  return true;
}
