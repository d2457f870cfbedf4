/**
 * A save that crashes its worker would go unnoticed: it runs during the next step, outside of any activity. So each save is
 * counted in the session's row before it begins, and the count goes back to 0 when it has ended in any way.
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
  const endTurn = await begin(db, sessionId);
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  const own = { db, sessionId, ended };
  underWay.add(own);
  try {
    return await save();
  } finally {
    endTurn();
    await forgetSavesBegun(db, sessionId).catch(() => void forgetLater(db, sessionId));
    underWay.delete(own);
    end();
  }
}

/** Saves of this process. */
const underWay = new Set<{
  readonly db: Queryable;
  readonly sessionId: string;
  readonly ended: Promise<void>;
}>();

/**
 * For a worker that ends in good order: no save that it leaves behind was lost. One rolling deploy ends two workers in a row.
 * @param timeoutMs how long saves in progress are waited for
 */
export async function endSaves(db: Queryable, timeoutMs: number): Promise<void> {
  const own = [...underWay].filter((save) => save.db === db);
  if (own.length === 0) return;
  await Promise.race([
    Promise.all(own.map(({ ended }) => ended)),
    sleep(timeoutMs, undefined, { ref: false }),
  ]);
  const left = own.filter((save) => underWay.has(save));
  await Promise.all(left.map(({ sessionId }) => forgetSavesBegun(db, sessionId)));
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

/** Postgres is unreachable but this worker is alive: otherwise the save would still count. */
async function forgetLater(db: Queryable, sessionId: string): Promise<void> {
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    await sleep(RETRY_MS, undefined, { ref: false });
    const isDone = await forgetSavesBegun(db, sessionId).then(
      () => true,
      () => false,
    );
    if (isDone) return;
  }
}
