/** The first save of a session that begins on its repository's base: nothing differs from it yet. */
import type { SessionGit } from "../config/git-settings.ts";
import type { GitAccess } from "../git/git-access.ts";
import type { Fetched } from "../git/lay-out.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import { findBase } from "../store/bases.ts";
import { latestCheckpoint, saveCheckpoint } from "../store/checkpoints.ts";
import { appendEvents } from "../store/events.ts";
import { withSandboxLock } from "../store/session-locks.ts";
import type { Session } from "../store/sessions.ts";
import { packWorkspace } from "../store/workspace-pack.ts";
import { shareWork, type SharedWork } from "../sandbox/shared-work.ts";
import { type MadeBase, makeFetchedBase, toBaseKey } from "../workspace/base.ts";
import { inCharge, type SessionSandboxes } from "../workspace/session-sandbox.ts";

export type BaseMakers = ReturnType<typeof createBaseMakers>;

interface Beginning {
  readonly session: Session;
  readonly repository: SessionGit;
  readonly access: GitAccess;
  readonly fetched: Fetched;
  readonly signal: AbortSignal;
}

/** One for a worker: its sessions that begin at the same commit wait for one making, which holds one connection. */
export function createBaseMakers(deps: AgentDeps, sandboxes: SessionSandboxes) {
  const making = new Map<string, SharedWork<MadeBase | undefined>>();

  /** @returns what it has, for the session that had it made */
  async function make(beginning: Beginning, key: string): Promise<MadeBase | undefined> {
    const before = making.get(key);
    if (before?.canJoin === true) {
      await before.join(beginning.signal);
      return undefined;
    }
    const { url } = beginning.repository;
    const base = { key, url, commit: beginning.fetched.start.commit };
    const work = shareWork((signal) =>
      deps.store.db.transaction((tx) =>
        makeFetchedBase(tx, deps, { session: beginning.session, base, signal }, beginning),
      ),
    );
    making.set(key, work);
    void work.over.then(() => {
      if (making.get(key) === work) making.delete(key);
    });
    return work.join(beginning.signal);
  }

  return {
    /**
     * Makes the base if it is not there, and the session's first save, with which its sandbox is opened on it. Idempotent.
     * @throws what `layOut` throws; SandboxUnavailable (retryable), SandboxRefused (fatal)
     */
    async begin(beginning: Beginning): Promise<void> {
      const { session, repository, fetched } = beginning;
      const { db } = deps.store;
      const { commit } = fetched.start;
      const key = toBaseKey(session, repository, fetched);
      const began = performance.now();
      const say = (type: "base:making" | "base:made" | "base:used", data: object) =>
        appendEvents(db, session.id, session.epoch, [{ type, step: 0, data } as never]);
      const isMade =
        (await deps.sandboxHost.bases?.isMade(key)) === true && (await findBase(db, key)) !== undefined;
      if (!isMade) await say("base:making", { commit, why: "no session began at this commit on this host" });
      const made = await make(beginning, key);
      const ms = Math.round(performance.now() - began);
      if (made !== undefined) await say("base:made", { commit, ...made, ms });
      await beginSave(deps, sandboxes, session, key);
      await say("base:used", { base: key, commit, behind: 0, ms });
    },
  };
}

async function beginSave(
  deps: AgentDeps,
  sandboxes: SessionSandboxes,
  session: Session,
  baseKey: string,
): Promise<void> {
  const nothing = await packWorkspace([]);
  await withSandboxLock(deps.store, session.id, async (tx) => {
    await inCharge(tx, session);
    const before = await latestCheckpoint(tx, session.id);
    if (before?.baseKey === baseKey) return;
    // An earlier attempt began elsewhere, as before the branch moved: its sandbox does not stand on this base.
    sandboxes.forget(session.id);
    await deps.sandboxHost.remove(session.id);
    const at = { sessionId: session.id, epoch: session.epoch, step: 0 };
    await saveCheckpoint(tx, { ...at, ...nothing, whole: true, baseKey });
  });
}
