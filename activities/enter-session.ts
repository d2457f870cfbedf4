/** First thing in each activity: the session, and the right to write to it. */
import type { ActivityScope } from "./activity-scope.ts";
import { fatal } from "./failures.ts";
import type { Store } from "./store/db.ts";
import { takeOver, type Standpoint } from "./store/runs.ts";
import { findSession, type Session } from "./store/sessions.ts";

interface Entered {
  readonly session: Session;
  /** The run took it over just now. */
  readonly isNew: boolean;
}

type Caller = Pick<ActivityScope, "sessionId" | "runId">;

/**
 * @returns the session with the epoch in force; a run that was reset takes it over here
 * @throws Superseded (fatal) where a newer run has it, BadConfiguration (fatal) where there is no such session
 */
export async function enterSession(store: Store, scope: Caller, at: Standpoint): Promise<Session> {
  return (await enter(store, scope, at)).session;
}

/**
 * As `enterSession`, and reads what the activity is about beside the session's row, not after it.
 * @param read is called again where the run took the session over only now: rows may have left the view, or come back
 */
export async function enterReading<T>(
  store: Store,
  scope: Caller,
  at: Standpoint,
  read: () => Promise<T>,
): Promise<[Session, T]> {
  const early = read();
  early.catch(() => undefined);
  const { session, isNew } = await enter(store, scope, at);
  return [session, await (isNew ? read() : early)];
}

async function enter(store: Store, scope: Caller, at: Standpoint): Promise<Entered> {
  const entered = await tryEnter(store, scope, at);
  if (entered === "missing")
    throw fatal(
      "BadConfiguration",
      `No session ${scope.sessionId} in Postgres. Start one with: longhaul start "TASK"`,
    );
  if (entered === "superseded") {
    throw fatal(
      "Superseded",
      `A newer run has taken over session ${scope.sessionId}; this attempt wrote nothing.`,
    );
  }
  return entered;
}

/**
 * For a run that ends after a step: one that was reset to there has not written anything yet, and ends the session.
 * @returns undefined where a newer run has it, or where there is no such session
 */
export async function enterToClose(store: Store, scope: Caller, step: number): Promise<Session | undefined> {
  const entered = await tryEnter(store, scope, { step: step + 1, phase: "model" });
  return typeof entered === "string" ? undefined : entered.session;
}

async function tryEnter(
  store: Store,
  scope: Caller,
  at: Standpoint,
): Promise<Entered | "missing" | "superseded"> {
  const session = await findSession(store.db, scope.sessionId);
  if (!session) return "missing";
  if (session.runId === scope.runId) return { session, isNew: false };
  const taken = await takeOver(store, scope, at);
  if (taken === "superseded") return taken;
  const restoreWorkspace = taken.wentBack || session.restoreWorkspace;
  return { session: { ...session, epoch: taken.epoch, runId: scope.runId, restoreWorkspace }, isNew: true };
}
