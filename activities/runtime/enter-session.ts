/** First thing in each activity: the session, and the right to write to it. */
import type { ActivityScope } from "./activity-scope.ts";
import type { CloseSandboxInput } from "../contract/activities.ts";
import type { AgentDeps } from "./deps.ts";
import { fatal, superseded } from "../contract/failures.ts";
import { runInCharge, takeOver, type Standpoint } from "../store/runs.ts";
import { findSession, lastStep, type Session } from "../store/sessions.ts";

interface Entered {
  readonly session: Session;
  /** The run took it over just now. */
  readonly isNew: boolean;
}

const ORPHANED =
  "The session that delegated this task went back to an earlier step, so nothing waits for the result. The conversation and the files are kept: fork the session to continue with them.";

type Caller = Pick<ActivityScope, "sessionId" | "runId">;
type EnterDeps = Pick<AgentDeps, "store" | "sessionRuns" | "announcements">;

/**
 * @returns the session with the epoch in force; a run that was reset takes it over here
 * @throws Superseded (fatal) if a newer run has it, BadConfiguration (fatal) if there is no such session
 */
export async function enterSession(deps: EnterDeps, scope: Caller, at: Standpoint): Promise<Session> {
  return (await enter(deps, scope, at)).session;
}

/**
 * As `enterSession`, and reads what the activity is about in parallel with the session's row, not after it.
 * @param read is called again if the run took the session over only now: rows may have left the view, or come back
 */
export async function enterReading<T>(
  deps: EnterDeps,
  scope: Caller,
  at: Standpoint,
  read: () => Promise<T>,
): Promise<[Session, T]> {
  const early = read();
  early.catch(() => undefined);
  const { session, isNew } = await enter(deps, scope, at);
  return [session, await (isNew ? read() : early)];
}

async function enter(deps: EnterDeps, scope: Caller, at: Standpoint): Promise<Entered> {
  const entered = await tryEnter(deps, scope, at);
  if (entered === "missing")
    throw fatal(
      "BadConfiguration",
      `No session ${scope.sessionId} in Postgres. Start one with: longhaul start "TASK"`,
    );
  if (entered === "superseded") {
    throw superseded("this attempt wrote nothing");
  }
  // Its end is written nevertheless: see `enterToClose`.
  if (entered.session.isOrphan) throw fatal("Superseded", ORPHANED);
  return entered;
}

/**
 * For a run that ends after a step: one that was reset to there has not written anything yet, and ends the session. One
 * that never opened it ends only what is its own (`NeverOpened`).
 * @returns the session and its last finished step; undefined if the run has nothing to end
 */
export async function enterToClose(
  deps: EnterDeps,
  scope: Caller,
  { step, neverOpened }: CloseSandboxInput,
): Promise<{ readonly session: Session; readonly step: number } | undefined> {
  if (neverOpened === undefined) {
    const entered = await tryEnter(deps, scope, { step: step + 1, phase: "model" });
    return typeof entered === "string" ? undefined : { session: entered.session, step };
  }
  const { db } = deps.store;
  const inCharge = await runInCharge(db, scope.sessionId);
  const own = [undefined, scope.runId, neverOpened.continuedFrom];
  if (!own.includes(inCharge)) return undefined;
  const last = await lastStep(db, scope.sessionId);
  const entered = await tryEnter(deps, scope, { step: last + 1, phase: "resume" });
  return typeof entered === "string" ? undefined : { session: entered.session, step: last };
}

async function tryEnter(
  deps: EnterDeps,
  scope: Caller,
  at: Standpoint,
): Promise<Entered | "missing" | "superseded"> {
  const session = await findSession(deps.store.db, scope.sessionId);
  if (!session) return "missing";
  if (session.runId === scope.runId) return { session, isNew: false };
  const taken = await takeOver(deps, scope, at);
  if (taken === "superseded") return taken;
  // What still runs for a run that was reset or terminated learns of it now, and not by its next heartbeat.
  deps.announcements.stop(scope.sessionId);
  // Its epoch, its files and what waits for it may be others now.
  const claimed = await findSession(deps.store.db, scope.sessionId);
  return claimed?.runId === scope.runId ? { session: claimed, isNew: true } : "superseded";
}
