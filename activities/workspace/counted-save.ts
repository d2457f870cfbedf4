/**
 * A save that crashes its worker would go unnoticed: it runs during the next step, outside of any activity. So each save is
 * counted in the session's row before it begins, and the count goes back to 0 however it ends.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { lostWithSaves, MAX_LOST_SAVES, suspects } from "../runtime/lost-attempts.ts";
import { beginSave, findSandbox, forgetSavesBegun, type SandboxRow } from "../store/sandboxes.ts";
import type { Queryable } from "../store/db.ts";

const RETRY_MS = 1_000;
/** Source: ours, longer than a restart of Postgres takes. */
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
