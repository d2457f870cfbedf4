/**
 * Saves that end their worker. They run beside a step and so outside of any activity, whose loss would be noticed: each is counted in the
 * session's row before it begins, and the count goes back to 0 however it ends.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { fatal } from "../contract/failures.ts";
import type { Queryable } from "../store/db.ts";
import { beginSave, findSandbox, forgetSavesBegun, type SandboxRow } from "../store/sandboxes.ts";
import type { Suspects } from "./lost-attempts.ts";

/**
 * How many saves of a session's files in a row may be lost with their worker; how long each ran is not known. Chosen: with
 * 50 sessions on two workers that were killed again and again, three in a row were an accident (measured 2026-11).
 */
const MAX_LOST_SAVES = 5;

/** @returns PoisonedSession (fatal) */
function lostWithSaves(): Error {
  return fatal(
    "PoisonedSession",
    `${MAX_LOST_SAVES} workers in a row were lost while they saved this session's files. This run no longer saves or opens its sandbox. ` +
      "The conversation is kept, and the files as last saved; the newest are in the sandbox, which is kept as well. " +
      "See the workers' logs for why they ended (memory, a crash); then send a message to continue in that sandbox, and have it remove large or numerous files there.",
  );
}

const RETRY_MS = 1_000;
/** Chosen: longer than a restart of Postgres takes. */
const MAX_TRIES = 60;

/** A worker's saves, which may end it. */
export class CountedSaves {
  readonly #db: Queryable;
  readonly #suspects: Suspects;
  readonly #underWay = new Set<{ readonly sessionId: string }>();
  #isEnding = false;

  constructor(db: Queryable, suspects: Suspects) {
    this.#db = db;
    this.#suspects = suspects;
  }

  /** @throws PoisonedSession (fatal) if too many workers were lost while they saved this session; what `save` throws */
  async run<T>(sessionId: string, save: () => Promise<T>): Promise<T> {
    if (this.#isEnding) return save();
    const own = { sessionId };
    this.#underWay.add(own);
    let endTurn: (() => void) | undefined;
    try {
      endTurn = await this.#begin(sessionId);
      if (this.#isEnding) await forgetSavesBegun(this.#db, sessionId);
      return await save();
    } finally {
      endTurn?.();
      if (endTurn !== undefined)
        await forgetSavesBegun(this.#db, sessionId).catch(() => void forgetLater(this.#db, sessionId));
      this.#underWay.delete(own);
    }
  }

  /**
   * For a worker that was asked to end: from now on no save counts as the cause of its end. The worker may be killed before it has
   * drained, and one rolling deploy ends two workers in a row.
   */
  async countNoMore(): Promise<void> {
    this.#isEnding = true;
    await Promise.all([...this.#underWay].map(({ sessionId }) => forgetSavesBegun(this.#db, sessionId)));
  }

  /** @returns a function that ends its turn among the saves that may crash this worker */
  async #begin(sessionId: string): Promise<() => void> {
    if (await beginSave(this.#db, sessionId, 1)) return () => undefined;
    const endTurn = await this.#suspects.turn(() => new Promise(() => undefined));
    try {
      if (!(await beginSave(this.#db, sessionId, MAX_LOST_SAVES))) {
        const row = await findSandbox(this.#db, sessionId);
        if (row !== undefined) refuseLostSaves(row);
      }
      return endTurn;
    } catch (error) {
      endTurn();
      throw error;
    }
  }
}

/** @throws PoisonedSession (fatal) */
export function refuseLostSaves({ savesBegun }: SandboxRow): void {
  if (savesBegun >= MAX_LOST_SAVES) throw lostWithSaves();
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
