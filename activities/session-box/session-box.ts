/** The box of a session, opened when it is first needed: with its files back, once, whoever asks. */
import { ApplicationFailure } from "@temporalio/common";
import type { RunConfig } from "../agent-config.ts";
import { lossOf } from "./box-loss.ts";
import type { AgentDeps } from "../deps.ts";
import { fatal } from "../failures.ts";
import type { BoxSpec, Sandbox } from "../sandbox/sandbox.ts";
import { SandboxLost } from "../sandbox/sandbox-lost.ts";
import { restoreWorkspace } from "../sandbox/workspace.ts";
import { REBUILT_FOLDERS } from "../sandbox/workspace-manifest.ts";
import { addNotice, findBox, lastChangingStep, recordBox, setNotice } from "../store/boxes.ts";
import { checkpointChain, latestCheckpoint, retimeCheckpoint } from "../store/checkpoints.ts";
import type { Queryable } from "../store/db.ts";
import type { NewEvent } from "../store/event.ts";
import { appendEvents } from "../store/events.ts";
import { findSession, lockedSession, setContainer, type Session } from "../store/sessions.ts";

export interface OpenBox {
  readonly box: Sandbox;
  readonly workspace: "adopted" | "restored" | "empty";
}

export interface SessionBoxes {
  /**
   * Opens the box or returns the one that is open. After a reset it is made anew, so that no process of the abandoned
   * line lives on, and its files are those of the newest live checkpoint.
   */
  open(session: Session, step: number): Promise<OpenBox>;
  /** Forgets a box that is gone, so that the next `open` makes sure anew. */
  forget(sessionId: string): void;
}

type BoxDeps = Pick<AgentDeps, "store" | "notifier" | "sandboxHost" | "taskQueues">;

export function createSessionBoxes(deps: BoxDeps): SessionBoxes {
  const open = new Map<string, { epoch: number; opening: Promise<OpenBox> }>();
  return {
    async open(session, step) {
      const known = open.get(session.id);
      if (known?.epoch === session.epoch) {
        const { box } = await known.opening;
        return { box, workspace: "adopted" };
      }
      const opening = openLocked(deps, session.id, step);
      open.set(session.id, { epoch: session.epoch, opening });
      opening.catch(() => open.delete(session.id));
      return opening;
    },
    forget(sessionId) {
      open.delete(sessionId);
    },
  };
}

/** Runs with a box and forgets it when it turns out to be lost. */
export async function withoutLost<T>(
  boxes: SessionBoxes,
  sessionId: string,
  body: () => Promise<T>,
): Promise<T> {
  try {
    return await body();
  } catch (error) {
    if (error instanceof SandboxLost) boxes.forget(sessionId);
    throw error;
  }
}

// One opener at a time over all workers: two would restore into one workspace. All within its own connection: openers
// that each waited for a second one could use up the pool and wait for ever.
async function openLocked(deps: BoxDeps, sessionId: string, step: number): Promise<OpenBox> {
  try {
    return await lockedSession(deps.store, sessionId, (tx) => openIn(tx, deps, sessionId, step));
  } catch (error) {
    // The transaction took it back; a run that goes on with what is left is told.
    if (error instanceof ApplicationFailure && error.type === "WorkspaceLost")
      await setNotice(deps.store.db, sessionId, `[${error.message}]`);
    throw error;
  }
}

async function openIn(tx: Queryable, deps: BoxDeps, sessionId: string, step: number): Promise<OpenBox> {
  const host = deps.sandboxHost;
  const session = await findSession(tx, sessionId);
  if (!session) throw new Error(`No session ${sessionId}.`);
  // An attempt whose worker was stopped until others had finished: a box that it made now would belong to nobody.
  if (session.status !== "active" && session.status !== "waiting")
    throw fatal("Superseded", `Session ${sessionId} has ended meanwhile; no box was made.`);
  const before = await findBox(tx, sessionId);
  if (session.restoreWorkspace) await host.remove(sessionId);
  const box = await host.open(boxSpec(sessionId, session.config));
  const checkpoint = await latestCheckpoint(tx, sessionId);
  const loss =
    before === undefined || session.container === undefined || session.restoreWorkspace
      ? undefined
      : lossOf({
          before,
          now: box.identity,
          step,
          lastChangingStep: await lastChangingStep(tx, sessionId),
          hasCheckpoint: checkpoint !== undefined,
          unsavedFolders: REBUILT_FOLDERS,
        });
  if (loss?.kind === "everything") {
    // Left there, it would look like this session's files the next time.
    await host.remove(sessionId);
    throw fatal("WorkspaceLost", loss.message);
  }
  // Not by whether it is empty: a restore that broke off leaves a part, and a tool may have emptied it.
  const isSame = before?.volume === box.identity.volume && !session.restoreWorkspace;
  const workspace = isSame ? "adopted" : checkpoint ? "restored" : "empty";
  if (!isSame && checkpoint) await restoreFrom(tx, box, checkpoint.id);
  await recordBox(tx, sessionId, {
    ...box.identity,
    taskQueue: deps.taskQueues.sandbox,
    // What is gone was told: from here on these files count.
    savedStep: isSame ? undefined : Math.max(0, step - 1),
  });
  await setContainer(tx, sessionId, box.container, host.name);
  const { container } = box;
  const events: NewEvent[] = [];
  if (loss?.kind === "processes" || loss?.kind === "files") {
    await addNotice(tx, sessionId, loss.notice);
    events.push({ type: "sandbox:lost", step, data: { container, message: loss.notice.slice(1, -1) } });
  }
  events.push(
    isSame
      ? { type: "sandbox:adopted", step, data: { container } }
      : { type: "sandbox:created", step, data: { container, workspace, network: box.network } },
  );
  await appendEvents(tx, sessionId, session.epoch, events);
  deps.notifier.wake(sessionId);
  return { box, workspace };
}

async function restoreFrom(tx: Queryable, box: Sandbox, checkpointId: number): Promise<void> {
  const manifest = await restoreWorkspace(box, await checkpointChain(tx, checkpointId));
  await retimeCheckpoint(tx, checkpointId, manifest);
}

function boxSpec(sessionId: string, { sandbox }: RunConfig): BoxSpec {
  const { image, network, allow, cpus, pids, runtime } = sandbox;
  return {
    sessionId,
    image,
    network,
    allow,
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
