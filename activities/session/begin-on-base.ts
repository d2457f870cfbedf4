/** The first save of a session that begins on its repository's base: nothing differs from it yet. */
import { retryable } from "../contract/failures.ts";
import type { SessionGit } from "../config/git-settings.ts";
import type { GitAccess } from "../git/git-access.ts";
import { commitsAhead, type Fetched } from "../git/lay-out.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import { findBase, holdBase, relatedBases, type StoredBase } from "../store/bases.ts";
import { latestCheckpoint, saveCheckpoint } from "../store/checkpoints.ts";
import type { NewEvent } from "../store/event.ts";
import { appendEvents } from "../store/events.ts";
import { withSandboxLock } from "../store/session-locks.ts";
import type { Session } from "../store/sessions.ts";
import { packWorkspace } from "../store/workspace-pack.ts";
import { shareWork, type SharedWork } from "../sandbox/shared-work.ts";
import { type MadeBase, makeFetchedBase, toBase } from "../workspace/base.ts";
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
  async function make(beginning: Beginning, base: StoredBase): Promise<MadeBase | undefined> {
    const before = making.get(base.key);
    if (before?.canJoin === true) {
      await before.join(beginning.signal);
      return undefined;
    }
    const work = shareWork((signal) =>
      deps.store.db.transaction((tx) =>
        makeFetchedBase(tx, deps, { session: beginning.session, base, signal }, beginning),
      ),
    );
    making.set(base.key, work);
    void work.over.then(() => {
      if (making.get(base.key) === work) making.delete(base.key);
    });
    return work.join(beginning.signal);
  }

  const isHere = async ({ key }: StoredBase): Promise<boolean> =>
    (await deps.sandboxHost.bases?.isMade(key)) === true &&
    (await findBase(deps.store.db, key)) !== undefined;

  /** The base of this very commit; else the newest one of an older commit that differs little. */
  async function findHere({ access, fetched }: Beginning, own: StoredBase): Promise<UsedBase | undefined> {
    if (await isHere(own)) return { ...own, behind: 0 };
    for (const related of await relatedBases(deps.store.db, own.family)) {
      if (related.key === own.key || !(await isHere(related))) continue;
      const behind = await commitsAhead(access, fetched, related.commit);
      if (behind !== undefined) return { ...related, behind };
    }
    return undefined;
  }

  return {
    /**
     * Finds or makes the base, and makes the session's first save, with which its sandbox is opened on it. Idempotent.
     * @throws what `layOut` throws; SandboxUnavailable (retryable), SandboxRefused (fatal)
     */
    async begin(beginning: Beginning): Promise<UsedBase> {
      const { session, repository, fetched } = beginning;
      const own = toBase(session, repository, fetched);
      const { commit } = own;
      const startMs = performance.now();
      const sinceStartMs = () => Math.round(performance.now() - startMs);
      const say = (event: NewEvent) => appendEvents(deps.store.db, session.id, session.epoch, [event]);
      const nearest =
        repository.depth === 0 || (await isHere(own)) ? await findHere(beginning, own) : undefined;
      if (nearest === undefined) {
        const why = "none is on this host that this commit differs little from";
        await say({ type: "base:making", step: 0, data: { commit, why } });
        const made = await make(beginning, own);
        if (made !== undefined)
          await say({ type: "base:made", step: 0, data: { commit, ...made, ms: sinceStartMs() } });
      }
      const base = nearest ?? { ...own, behind: 0 };
      await beginSave(deps, sandboxes, session, base.key);
      const used = { base: base.key, commit: base.commit, behind: base.behind, ms: sinceStartMs() };
      await say({ type: "base:used", step: 0, data: used });
      return base;
    },
  };
}

interface UsedBase extends StoredBase {
  /** How many commits of the session's start it lacks. */
  readonly behind: number;
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
    if (!(await holdBase(tx, baseKey)))
      throw retryable(
        "SandboxUnavailable",
        "the base was removed with the last session on it; it is made again",
      );
    // An earlier attempt began elsewhere, as before the branch moved: its sandbox does not stand on this base.
    sandboxes.forget(session.id);
    await deps.sandboxHost.remove(session.id);
    const at = { sessionId: session.id, epoch: session.epoch, step: 0 };
    await saveCheckpoint(tx, { ...at, ...nothing, whole: true, baseKey });
  });
}
