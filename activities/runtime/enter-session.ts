/** The first thing in each activity: load the session and check that this run may write to it. */
import type { ActivityScope } from "./activity-scope.ts";
import type { CloseSandboxInput } from "../contract/activities.ts";
import type { AgentDeps } from "./deps.ts";
import { fatal, superseded } from "../contract/failures.ts";
import { unlessRecorded } from "./note-missing.ts";
import { runInCharge, takeOver } from "../store/runs.ts";
import type { Standpoint } from "../store/lines.ts";
import { findSession, lastStep, type Session } from "../store/sessions.ts";

interface Entered {
  readonly session: Session;
  /** The run claimed the session just now. */
  readonly isNew: boolean;
}

const ORPHANED =
  "The session that delegated this task went back to an earlier step, so nothing waits for the result. The conversation and the files are kept: fork the session to continue with them.";

type Caller = Pick<ActivityScope, "sessionId" | "runId">;
type EnterDeps = Pick<AgentDeps, "store" | "sessionRuns" | "announcements">;

/**
 * @returns the session with the epoch in force; a run that was reset claims it here. Steps before `at` whose rows are missing are on
 *   record now
 * @throws Superseded (fatal) if a newer run has claimed it, RecordMissing (fatal) if there is no such session
 */
export async function enterSession(deps: EnterDeps, scope: Caller, at: Standpoint): Promise<Session> {
  return (await enter(deps, scope, at)).session;
}

/**
 * Like `enterSession`, but also reads the activity's own rows, in parallel with the session's row.
 * @param read is called again if the run claimed the session only now: rows may have left the view, or come back
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
  if (entered === "missing") throw sessionMissing(scope.sessionId, at);
  if (entered === "superseded") {
    throw superseded("this attempt wrote nothing");
  }
  // The end of such a run is written nevertheless: see `enterToClose`.
  if (entered.session.isOrphan) throw fatal("Superseded", ORPHANED);
  return reaching(deps, scope, entered, at.phase === "tools" ? at.step : at.step - 1);
}

/** Puts on record what is missing of the steps that the run has finished. @param finished the last one */
async function reaching(
  deps: EnterDeps,
  scope: Caller,
  entered: Entered,
  finished: number,
): Promise<Entered> {
  const { session } = entered;
  if (finished <= session.reached || !(await unlessRecorded(deps, scope, session, finished))) return entered;
  const again = await findSession(deps.store.db, session.id);
  return again === undefined ? entered : { session: again, isNew: true };
}

/** A run that has done something knows a session that the database does not. */
function sessionMissing(id: string, { step, phase }: Standpoint) {
  if (step <= 1 && phase !== "tools")
    return fatal("BadConfiguration", `No session ${id} in Postgres. Start one with: longhaul start "TASK"`);
  return fatal(
    "RecordMissing",
    `Postgres has no session ${id}, which has done ${step - 1} steps: it was restored from a backup that is older than the session, or it is another database. Nothing was changed. The session's sandbox is kept as it is, and Temporal has the run's history. Restore a newer backup, and continue with: longhaul say ${id} "Go on."`,
  );
}

/**
 * For a run that ends. A run that was reset to this point has not written anything yet, and ends the session. A run that never
 * opened the session ends only what belongs to it (`NeverOpened`).
 * @returns the session and its last finished step; undefined if the run has nothing to end
 */
export async function enterToClose(
  deps: EnterDeps,
  scope: Caller,
  { step, neverOpened }: CloseSandboxInput,
): Promise<{ readonly session: Session; readonly step: number } | undefined> {
  if (neverOpened === undefined) {
    const entered = await tryEnter(deps, scope, { step: step + 1, phase: "model" });
    if (typeof entered === "string") return undefined;
    return { session: (await reaching(deps, scope, entered, step)).session, step };
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
  const takeover = await takeOver(deps, scope, at);
  if (takeover === "superseded") return takeover;
  // Activities of a run that was reset or terminated learn of it now, instead of at their next heartbeat.
  deps.announcements.announceStop(scope.sessionId);
  // Its epoch, its files and its waiting messages may have changed.
  const claimed = await findSession(deps.store.db, scope.sessionId);
  return claimed?.runId === scope.runId ? { session: claimed, isNew: true } : "superseded";
}
