/** The box of a session, opened when it is first needed: with its files back, once, whoever asks. */
import type { RunConfig } from "./agent-config.ts";
import type { AgentDeps } from "./deps.ts";
import type { Sandbox } from "./sandbox/sandbox.ts";
import { SandboxLost } from "./sandbox/sandbox-lost.ts";
import { restoreWorkspace } from "./sandbox/workspace.ts";
import { checkpointChain, latestCheckpoint } from "./store/checkpoints.ts";
import { appendEvents } from "./store/events.ts";
import { findSession, lockedSession, setContainer, type Session } from "./store/sessions.ts";

export interface OpenBox {
  readonly box: Sandbox;
  readonly workspace: "adopted" | "restored" | "empty";
  /** The session had another box before, which is gone with its processes. */
  readonly replaced: boolean;
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

type BoxDeps = Pick<AgentDeps, "store" | "notifier" | "sandboxHost">;

export function createSessionBoxes(deps: BoxDeps): SessionBoxes {
  const open = new Map<string, { epoch: number; opening: Promise<OpenBox> }>();
  return {
    async open(session, step) {
      const known = open.get(session.id);
      if (known?.epoch === session.epoch) {
        const { box } = await known.opening;
        return { box, workspace: "adopted", replaced: false };
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

// One opener at a time over all workers: two would restore into one workspace.
function openLocked(deps: BoxDeps, sessionId: string, step: number): Promise<OpenBox> {
  return lockedSession(deps.store, sessionId, async (tx) => {
    const session = await findSession(tx, sessionId);
    if (!session) throw new Error(`No session ${sessionId}.`);
    if (session.restoreWorkspace) await deps.sandboxHost.remove(sessionId);
    const box = await deps.sandboxHost.open(boxSpec(sessionId, session.config));
    const workspace = box.fresh ? await restore(deps, sessionId, box) : "adopted";
    await setContainer(tx, sessionId, box.container, deps.sandboxHost.name);
    const replaced = box.fresh && session.container !== undefined && !session.restoreWorkspace;
    await appendEvents(tx, sessionId, session.epoch, [
      box.fresh
        ? { type: "sandbox:created", step, data: { container: box.container, workspace } }
        : { type: "sandbox:adopted", step, data: { container: box.container } },
    ]);
    deps.notifier.wake(sessionId);
    return { box, workspace, replaced };
  });
}

async function restore(deps: BoxDeps, sessionId: string, box: Sandbox): Promise<"restored" | "empty"> {
  const checkpoint = await latestCheckpoint(deps.store.db, sessionId);
  if (!checkpoint) return "empty";
  await restoreWorkspace(box, await checkpointChain(deps.store.db, checkpoint.id));
  return "restored";
}

function boxSpec(sessionId: string, { sandbox }: RunConfig) {
  const unit = sandbox.memory.endsWith("g") ? 1024 ** 3 : 1024 ** 2;
  return {
    sessionId,
    image: sandbox.image,
    network: sandbox.network,
    memoryBytes: Number.parseInt(sandbox.memory, 10) * unit,
    cpus: sandbox.cpus,
    pids: sandbox.pids,
  };
}
