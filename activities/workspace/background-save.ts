/**
 * Saves of the workspace after a step's calls, during the next model step: off the critical path and without a separate
 * activity, which would add half again to a step's history and cost. If a crash prevents a save, the next one includes its changes,
 * because each compares with the last stored one.
 *
 * A save that crashes its worker would go unnoticed: it runs outside of any activity. So each save is counted in the session's row before it
 * begins, and the count goes back to 0 however it ends.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { lostWithSaves, MAX_LOST_SAVES, suspects } from "../runtime/lost-attempts.ts";
import { beginSave, findSandbox, forgetSavesBegun, type SandboxRow } from "../store/sandboxes.ts";
import type { Queryable } from "../store/db.ts";

export type BackgroundSaves = ReturnType<typeof createBackgroundSaves>;

interface Activity {
  /** Running calls and saves in progress. */
  users: number;
  running: number;
  due: (() => Promise<unknown>) | undefined;
  saving: Promise<void>;
}

export function createBackgroundSaves() {
  const sessions = new Map<string, Activity>();
  const leave = (id: string, activity: Activity) => {
    activity.users -= 1;
    if (activity.users === 0) sessions.delete(id);
  };
  const enter = (id: string): Activity => {
    const activity = sessions.get(id) ?? {
      users: 0,
      running: 0,
      due: undefined,
      saving: Promise.resolve(),
    };
    sessions.set(id, activity);
    activity.users += 1;
    return activity;
  };
  /** A failed save fails nothing else: the next one, or the last at the end, includes its changes. */
  const track = <T>(id: string, activity: Activity, save: Promise<T>): Promise<T> => {
    activity.saving = save
      .then(
        () => undefined,
        () => undefined,
      )
      .finally(() => leave(id, activity));
    return save;
  };
  return {
    /**
     * Runs a call; saves when the last of concurrent calls is over and one of them may have changed files.
     * @param body gets a promise to wait for before it changes files: the end of a save in progress, which never rejects
     */
    async around<T>(
      id: string,
      { changes, save }: { readonly changes: boolean; readonly save: () => Promise<unknown> },
      body: (saved: Promise<void>) => Promise<T>,
    ): Promise<T> {
      const activity = enter(id);
      activity.running += 1;
      try {
        return await body(activity.saving);
      } finally {
        activity.running -= 1;
        if (changes) activity.due = save;
        if (activity.running === 0 && activity.due) {
          const { due } = activity;
          activity.due = undefined;
          // The call may have stopped waiting for a save that is still in progress.
          void track(id, enter(id), activity.saving.then(due)).catch(() => undefined);
        }
        leave(id, activity);
      }
    },
    /** Saves now, after a save in progress; `settled` waits for this one too. */
    saving<T>(id: string, save: () => Promise<T>): Promise<T> {
      const activity = enter(id);
      return track(id, activity, activity.saving.then(save));
    },
    /** Resolves when no save of the session is in progress. Never rejects. */
    async settled(id: string): Promise<void> {
      await sessions.get(id)?.saving;
    },
  };
}

const RETRY_MS = 1_000;
/** Chosen: longer than a restart of Postgres takes. */
const MAX_TRIES = 60;

/** @throws PoisonedSession (fatal) if too many workers were lost while they saved this session; what `save` throws */
export async function countedSave<T>(db: Queryable, sessionId: string, save: () => Promise<T>): Promise<T> {
  if (ending.has(db)) return save();
  const own = { db, sessionId };
  underWay.add(own);
  let endTurn: (() => void) | undefined;
  try {
    endTurn = await begin(db, sessionId);
    if (ending.has(db)) await forgetSavesBegun(db, sessionId);
    return await save();
  } finally {
    endTurn?.();
    if (endTurn !== undefined)
      await forgetSavesBegun(db, sessionId).catch(() => void forgetLater(db, sessionId));
    underWay.delete(own);
  }
}

/** Saves of this process. */
const underWay = new Set<{ readonly db: Queryable; readonly sessionId: string }>();
/** The databases of workers that were asked to end. */
const ending = new WeakSet<Queryable>();

/**
 * For a worker that was asked to end: from now on no save counts as the cause of its end. The worker may be killed before it has
 * drained, and one rolling deploy ends two workers in a row.
 */
export async function countNoMoreSaves(db: Queryable): Promise<void> {
  ending.add(db);
  const own = [...underWay].filter((save) => save.db === db);
  await Promise.all(own.map(({ sessionId }) => forgetSavesBegun(db, sessionId)));
}

/** @throws PoisonedSession (fatal) */
export function refuseLostSaves({ savesBegun }: SandboxRow): void {
  if (savesBegun >= MAX_LOST_SAVES) throw lostWithSaves();
}

/** @returns a function that ends its turn among the saves that may crash this worker */
async function begin(db: Queryable, sessionId: string): Promise<() => void> {
  if (await beginSave(db, sessionId, 1)) return () => undefined;
  const endTurn = await suspects.turn(() => new Promise(() => undefined));
  try {
    if (!(await beginSave(db, sessionId, MAX_LOST_SAVES))) {
      const row = await findSandbox(db, sessionId);
      if (row !== undefined) refuseLostSaves(row);
    }
    return endTurn;
  } catch (error) {
    endTurn();
    throw error;
  }
}

/** Postgres is unreachable but this worker is alive: without a later attempt the save would still count. */
async function forgetLater(db: Queryable, sessionId: string): Promise<void> {
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    await sleep(RETRY_MS, undefined, { ref: false });
    try {
      return await forgetSavesBegun(db, sessionId);
    } catch {
      // Not back yet.
    }
  }
}
