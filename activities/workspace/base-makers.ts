/** Finds and makes bases on this host. One for a worker: those who need the same base wait for one making, which holds one connection. */
import { isDependencyFile } from "../config/dependency-files.ts";
import type { SessionGit } from "../config/git-settings.ts";
import type { Setup } from "../config/sandbox-settings.ts";
import type { GitAccess } from "../git/git-access.ts";
import { commitsAhead, type Fetched } from "../git/lay-out.ts";
import type { WorkspaceDeps } from "../runtime/deps.ts";
import { type SharedWork, shareWork } from "../sandbox/shared-work.ts";
import { findBase, relatedBases, type StoredBase } from "../store/bases.ts";
import type { Session } from "../store/sessions.ts";
import { type MadeBase, makeFetchedBase, type WantedBase } from "./base.ts";

/** Who needs a base, and what was fetched for it. */
export interface Beginning {
  readonly session: Session;
  readonly repository: SessionGit;
  readonly access: GitAccess;
  readonly fetched: Fetched;
  readonly signal: AbortSignal;
}

export interface UsedBase extends StoredBase {
  /** How many commits of the session's start it lacks. */
  readonly behind: number;
}

export type BaseMakers = ReturnType<typeof createBaseMakers>;

export function createBaseMakers(deps: WorkspaceDeps) {
  const making = new Map<string, SharedWork<MadeBase | undefined>>();

  const isHere = async ({ key }: StoredBase): Promise<boolean> =>
    (await deps.sandboxHost.bases?.isMade(key)) === true &&
    (await findBase(deps.store.db, key)) !== undefined;

  return {
    isHere,
    /**
     * @returns what it has, for the one that had it made
     * @throws as `makeFetchedBase`
     */
    async make(beginning: Beginning, base: WantedBase): Promise<MadeBase | undefined> {
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
    },
    /** The base of this very commit; else the newest one of an older commit that differs little. */
    async find(beginning: Beginning, own: WantedBase): Promise<UsedBase | undefined> {
      if (await isHere(own)) return { ...own, behind: 0 };
      const { access, fetched, repository } = beginning;
      if (repository.depth !== 0) return undefined;
      for (const related of await relatedBases(deps.store.db, own.family)) {
        if (related.key === own.key || !(await isHere(related))) continue;
        const ahead = await commitsAhead(access, fetched, related.commit);
        if (ahead === undefined) continue;
        // On the default branch a new one serves those who come next; else the session runs the set-up for itself.
        const isEnough = own.scope === "team" || repository.ref !== undefined;
        if (isEnough || (await isSetUpFor(related, own.setup, ahead.paths)))
          return { ...related, behind: ahead.count };
      }
      return undefined;
    },
  };

  /** Whether a base's set-up holds where these files differ. */
  async function isSetUpFor(
    { key }: StoredBase,
    setup: Setup | undefined,
    paths: readonly string[],
  ): Promise<boolean> {
    if (setup === undefined) return true;
    const depends = await deps.sandboxHost.bases?.setUp(key);
    return depends === "packages" && !paths.some((path) => isDependencyFile(path, setup.commands));
  }
}
