/** The sandbox of a session: opened when it is first needed, with its files restored, once, whoever asks. */
import { ApplicationFailure } from "@temporalio/common";
import type { RunConfig } from "../config/agent-config.ts";
import { refuseLostSaves } from "./counted-save.ts";
import { lossOf, type SandboxChange, type SandboxLoss } from "./sandbox-loss.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import { fatal } from "../contract/failures.ts";
import type { SandboxSpec, Sandbox, SandboxHost } from "../sandbox/sandbox.ts";
import { SandboxLost } from "../sandbox/sandbox-lost.ts";
import { restoreWorkspace } from "./workspace.ts";
import { endingWith, type ProgramSandbox } from "./workspace-program.ts";
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
import { checkpointChain, latestCheckpoint, retimeCheckpoint } from "../store/checkpoints.ts";
import type { Queryable } from "../store/db.ts";
import type { NewEvent } from "../store/event.ts";
import { appendEvents } from "../store/events.ts";
import { findSession, lockedSession, setContainer, type Session } from "../store/sessions.ts";

interface OpenSandbox {
  readonly sandbox: Sandbox;
  readonly workspace: "adopted" | "restored" | "empty";
}

export interface SessionSandboxes {
  /**
   * Opens the sandbox, or returns the open one where the session's row still names it. After a reset it is replaced, so
   * that no process of the abandoned line lives on; its files are those of the newest live checkpoint.
   * @param signal ends this caller's waiting at once; the opening itself is given up when nobody waits for it any more
   * @throws Superseded (fatal) where another run has the session, or this run has closed its sandbox; PoisonedSession (fatal)
   */
  open(session: Session, step: number, signal?: AbortSignal): Promise<OpenSandbox>;
  /**
   * The sandbox that has the session's files, to save them: creates no workspace and restores nothing.
   * @returns undefined where it is not on this host, was saved for the last time, or has the files of an abandoned line
   * @throws Superseded (fatal) where another run has the session
   */
  find(session: Session): Promise<Sandbox | undefined>;
  /** Forgets a sandbox that is gone, so that the next `open` looks again. */
  forget(sessionId: string): void;
}

export type WorkspaceDeps = Pick<AgentDeps, "store" | "notifier" | "sandboxHost" | "taskQueues">;

interface Entry {
  readonly runId: string | undefined;
  readonly work: SharedWork<OpenSandbox>;
  /** Set when it is open. */
  sandbox: Sandbox | undefined;
}

export function createSessionSandboxes(deps: WorkspaceDeps): SessionSandboxes {
  const { db } = deps.store;
  const entries = new Map<string, Entry>();

  /** Another worker may have replaced or removed what this one has open: the row says which sandbox counts. */
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
    async open(session, step, signal) {
      const sandbox = await abortable(current(session), signal);
      if (sandbox !== undefined) return { sandbox, workspace: "adopted" };
      const entry = entries.get(session.id);
      const isJoinable = entry !== undefined && entry.runId === session.runId && entry.work.canJoin;
      return (isJoinable ? entry : startOpening(session, step)).work.join(signal);
    },
    find: async (session) =>
      (await current(session)) ??
      lockedSession(deps.store, session.id, async (tx) => {
        const { config, restoreWorkspace } = await inCharge(tx, session);
        if (restoreWorkspace) return undefined;
        if (!(await hasFiles(await findSandbox(tx, session.id), deps.sandboxHost))) return undefined;
        return deps.sandboxHost.open(sandboxSpec(session.id, config));
      }),
    forget(sessionId) {
      entries.delete(sessionId);
    },
  };
}

/** Runs with a sandbox and forgets it when it turns out to be lost, or not to be used any more. */
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

/** The session's row, for the run that has it alone. @throws Superseded (fatal) */
export async function inCharge(tx: Queryable, { id, runId }: Session): Promise<Session> {
  const session = await findSession(tx, id);
  if (!session) throw new Error(`No session ${id}.`);
  if (session.runId !== runId)
    throw fatal("Superseded", `A newer run has taken over session ${id}; its sandbox was left alone.`);
  return session;
}

/** Whether this host has the session's newest files, some of which may be in no save. */
export async function hasFiles(row: SandboxRow | undefined, host: SandboxHost): Promise<boolean> {
  return row !== undefined && row.closedRun === null && row.volume === (await host.volume(row.sessionId));
}

/**
 * Removes a sandbox that has the session's name and not its files: of before it moved to another host, or one whose
 * opening broke off. To be called under the session's lock, under which a sandbox is made and recorded.
 */
export async function removeStray(tx: Queryable, host: SandboxHost, sessionId: string): Promise<boolean> {
  const volume = await host.volume(sessionId);
  if (volume === undefined || volume === (await findSandbox(tx, sessionId))?.volume) return false;
  await host.remove(sessionId);
  return true;
}

// One opener at a time over all workers: two would restore into one workspace. All within its own connection: openers
// that each waited for a second one could use up the pool and wait for ever.
async function openLocked(
  deps: WorkspaceDeps,
  session: Session,
  step: number,
  signal: AbortSignal,
): Promise<OpenSandbox> {
  const { store, sandboxHost } = deps;
  try {
    return await lockedSession(store, session.id, (tx) => openIn(tx, deps, session, step, signal));
  } catch (error) {
    // What cannot be removed now is removed by the next opening, by the run's end or by the reaper.
    await lockedSession(store, session.id, (tx) => removeStray(tx, sandboxHost, session.id)).catch(
      () => undefined,
    );
    // The transaction took it back; a run that goes on with what is left is told.
    if (error instanceof ApplicationFailure && error.type === "WorkspaceLost")
      await setNotice(store.db, session.id, `[${error.message}]`);
    throw error;
  }
}

async function openIn(
  tx: Queryable,
  deps: WorkspaceDeps,
  caller: Session,
  step: number,
  signal: AbortSignal,
): Promise<OpenSandbox> {
  const { sandboxHost: host } = deps;
  const { id } = caller;
  signal.throwIfAborted();
  const session = await inCharge(tx, caller);
  const before = await findSandbox(tx, id);
  // Attempts whose worker was stopped until others had finished: a sandbox that they made now would belong to nobody.
  if (session.status !== "active" && session.status !== "waiting")
    throw fatal("Superseded", `Session ${id} has ended meanwhile; no sandbox was made.`);
  if (before !== undefined && before.closedRun === session.runId)
    throw fatal("Superseded", `This run of session ${id} has closed its sandbox; none was made.`);
  if (before !== undefined) refuseLostSaves(before);
  if (session.restoreWorkspace) await host.remove(id);
  else await removeStray(tx, host, id);
  const sandbox = await host.open(sandboxSpec(id, session.config), signal);
  const checkpoint = await latestCheckpoint(tx, id);
  const loss =
    before === undefined || before.closedRun !== null || session.restoreWorkspace
      ? undefined
      : await lossIn(tx, id, {
          before,
          now: sandbox.identity,
          step,
          hasCheckpoint: checkpoint !== undefined,
        });
  if (loss?.kind === "everything") throw fatal("WorkspaceLost", loss.message);
  // Not by whether it is empty: a tool may have emptied it.
  const isSame = before?.volume === sandbox.identity.volume && !session.restoreWorkspace;
  const workspace = isSame ? "adopted" : checkpoint ? "restored" : "empty";
  if (!isSame && checkpoint) await restoreFrom(tx, endingWith(signal, sandbox), checkpoint.id);
  // The session's row first, as those that save do: two that locked them the other way round would wait for each other.
  await setContainer(tx, id, sandbox.container, host.name);
  await recordSandbox(tx, id, {
    ...sandbox.identity,
    taskQueue: deps.taskQueues.sandbox,
    // What is gone was told: from here on these files count.
    savedStep: isSame ? undefined : Math.max(0, step - 1),
  });
  const { container } = sandbox;
  const gaps = sandbox.gaps === undefined || sandbox.gaps.length === 0 ? {} : { gaps: sandbox.gaps };
  const events: NewEvent[] = [];
  if (loss?.kind === "processes" || loss?.kind === "files") {
    await addNotice(tx, id, loss.notice);
    events.push({ type: "sandbox:lost", step, data: { container, message: loss.notice.slice(1, -1) } });
  }
  events.push(
    isSame
      ? { type: "sandbox:adopted", step, data: { container, network: sandbox.network } }
      : { type: "sandbox:created", step, data: { container, workspace, network: sandbox.network, ...gaps } },
  );
  await appendEvents(tx, id, session.epoch, events);
  deps.notifier.wake(id);
  return { sandbox, workspace };
}

/** What is gone where the session's sandbox is `now` and was `before`. */
export async function lossIn(
  tx: Queryable,
  sessionId: string,
  change: Pick<SandboxChange, "now" | "step" | "hasCheckpoint"> & { readonly before: SandboxRow },
): Promise<SandboxLoss> {
  return lossOf({
    ...change,
    lastChangingStep: await lastChangingStep(tx, sessionId),
    unsavedFolders: REBUILT_FOLDERS,
  });
}

async function restoreFrom(tx: Queryable, sandbox: ProgramSandbox, checkpointId: number): Promise<void> {
  const manifest = await restoreWorkspace(sandbox, await checkpointChain(tx, checkpointId));
  await retimeCheckpoint(tx, checkpointId, manifest);
}

/** What the configuration says of its sandbox. */
export function sandboxSpec(sessionId: string, { sandbox }: RunConfig): SandboxSpec {
  const { image, network, allow, guard, cpus, pids, runtime } = sandbox;
  return {
    sessionId,
    image,
    network,
    allow,
    guard,
    cpus,
    pids,
    memoryBytes: bytesOf(sandbox.memory),
    disk: { bytes: bytesOf(sandbox.disk), freeBytes: bytesOf(sandbox.diskFree) },
    ...(runtime === undefined ? {} : { runtime }),
  };
}

function bytesOf(size: string): number {
  return Number.parseInt(size, 10) * (size.endsWith("g") ? 1024 ** 3 : 1024 ** 2);
}
