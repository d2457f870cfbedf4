/** First thing in each activity: the session, and the right to write to it. */
import type { ActivityScope } from "./activity-scope.ts";
import { fatal } from "./failures.ts";
import type { Store } from "./store/db.ts";
import { takeOver, type Standpoint } from "./store/runs.ts";
import { findSession, type Session } from "./store/sessions.ts";

type Caller = Pick<ActivityScope, "sessionId" | "runId">;

/**
 * @returns the session with the epoch in force; a run that was reset takes it over here
 * @throws Superseded (fatal) where a newer run has it, BadConfiguration (fatal) where there is no such session
 */
export async function enterSession(store: Store, scope: Caller, at: Standpoint): Promise<Session> {
  const session = await tryEnter(store, scope, at);
  if (session === "missing")
    throw fatal(
      "BadConfiguration",
      `No session ${scope.sessionId} in Postgres. Start one with: longhaul start "TASK"`,
    );
  if (session === "superseded") {
    throw fatal(
      "Superseded",
      `A newer run has taken over session ${scope.sessionId}; this attempt wrote nothing.`,
    );
  }
  return session;
}

/**
 * For a run that ends after a step: one that was reset to there has not written anything yet, and ends the session.
 * @returns undefined where a newer run has it, or where there is no such session
 */
export async function enterToClose(store: Store, scope: Caller, step: number): Promise<Session | undefined> {
  const session = await tryEnter(store, scope, { step: step + 1, phase: "model" });
  return typeof session === "string" ? undefined : session;
}

async function tryEnter(
  store: Store,
  scope: Caller,
  at: Standpoint,
): Promise<Session | "missing" | "superseded"> {
  const session = await findSession(store.db, scope.sessionId);
  if (!session) return "missing";
  if (session.runId === scope.runId) return session;
  const taken = await takeOver(store, scope, at);
  if (taken === "superseded") return taken;
  return {
    ...session,
    epoch: taken.epoch,
    runId: scope.runId,
    restoreWorkspace: taken.wentBack || session.restoreWorkspace,
  };
}
