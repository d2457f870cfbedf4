/** The first save of a session that begins on its repository's base: nothing differs from it yet. */
import { retryable } from "../contract/failures.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import { holdBase } from "../store/bases.ts";
import { latestCheckpoint, saveCheckpoint } from "../store/checkpoints.ts";
import type { NewEvent } from "../store/event.ts";
import { appendEvents } from "../store/events.ts";
import { withSandboxLock } from "../store/session-locks.ts";
import type { Session } from "../store/sessions.ts";
import { packWorkspace } from "../store/workspace-pack.ts";
import { findSetUpSettings, toBase, type WantedBase } from "../workspace/base.ts";
import { type Beginning, createBaseMakers, type UsedBase } from "../workspace/base-makers.ts";
import { type BaseScope, BaseSetUpFailed } from "../workspace/base-set-up.ts";
import { freeHostDisk } from "../workspace/host-disk.ts";
import { inCharge, type SessionSandboxes } from "../workspace/session-sandbox.ts";

export type SessionBases = ReturnType<typeof createSessionBases>;

export function createSessionBases(deps: AgentDeps, sandboxes: SessionSandboxes) {
  const makers = createBaseMakers(deps);

  async function findOrMake(beginning: Beginning, own: WantedBase): Promise<UsedBase | undefined> {
    const { session } = beginning;
    const { commit } = own;
    const nearest = await makers.find(beginning, own);
    if (nearest !== undefined || !(await mayMake(deps, session))) return nearest;
    const startMs = performance.now();
    const say = (event: NewEvent) => appendEvents(deps.store.db, session.id, session.epoch, [event]);
    const why = "none is on this host that this commit differs little from";
    await say({ type: "base:making", step: 0, data: { commit, why } });
    const made = await makers.make(beginning, own);
    const ms = Math.round(performance.now() - startMs);
    if (made !== undefined) {
      await say({ type: "base:made", step: 0, data: { commit, ...made, ms } });
      const { id, epoch } = session;
      await freeHostDisk(deps, { session: { id, epoch, step: 0 }, signal: beginning.signal });
    }
    return { ...own, behind: 0 };
  }

  const toOwn = async ({ session, repository, fetched }: Beginning, scope: BaseScope): Promise<WantedBase> =>
    toBase(session, repository, fetched, { scope, settings: await findSetUpSettings(deps, session, scope) });

  /** One that the operator's `warm` made: only it makes such bases. A submodule's repository has the author of who made it. */
  async function findTeams(beginning: Beginning): Promise<UsedBase | undefined> {
    const { session, repository } = beginning;
    if (session.config.sandbox.setup.scope !== "team" || repository.submodules) return undefined;
    return makers.find(beginning, await toOwn(beginning, "team"));
  }

  /** With the project's set-up, if it has one that can be part of it. */
  async function findFor(
    beginning: Beginning,
  ): Promise<(UsedBase & { readonly notSetUp?: string }) | undefined> {
    const teams = await findTeams(beginning);
    if (teams !== undefined) return teams;
    const { session, repository, fetched } = beginning;
    try {
      return await findOrMake(beginning, await toOwn(beginning, "person"));
    } catch (error) {
      if (!(error instanceof BaseSetUpFailed)) throw error;
      const plain = toBase(session, repository, fetched, { scope: "person", settings: undefined });
      const base = await findOrMake(beginning, plain);
      return base && { ...base, notSetUp: error.message };
    }
  }

  return {
    /**
     * Finds or makes the base, and makes the session's first save, with which its sandbox is opened on it. Idempotent.
     * @returns undefined if none is here, and the session waits for none
     * @throws what `layOut` throws; SandboxUnavailable (retryable), SandboxRefused (fatal)
     */
    async begin(beginning: Beginning): Promise<UsedBase | undefined> {
      const { session } = beginning;
      const startMs = performance.now();
      const chosen = await findFor(beginning);
      if (chosen === undefined) return undefined;
      const { notSetUp, ...base } = chosen;
      await beginSave(deps, sandboxes, session, base.key);
      const { key, commit, behind } = base;
      const ms = Math.round(performance.now() - startMs);
      const setUp = notSetUp === undefined ? {} : { notSetUp };
      await appendEvents(deps.store.db, session.id, session.epoch, [
        { type: "base:used", step: 0, data: { base: key, commit, behind, ...setUp, ms } },
      ]);
      return base;
    },
  };
}

/** Not for a session that waits for none, unless an earlier attempt has begun on one. */
async function mayMake({ store }: AgentDeps, { id, config }: Session): Promise<boolean> {
  if (config.sandbox.layers !== "made") return true;
  return (await latestCheckpoint(store.db, id))?.baseKey != null;
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
