/** First thing in each activity: the session, and the right to write to it. */
import type { ActivityScope } from "./activity-scope.ts";
import { fatal } from "./failures.ts";
import type { Store } from "./store/db.ts";
import { takeOver, type Standpoint } from "./store/runs.ts";
import { findSession, type Session } from "./store/sessions.ts";

/**
 * @returns the session with the epoch in force; a run that was reset takes it over here
 * @throws Superseded (fatal) where a newer run has it, BadConfiguration (fatal) where there is no such session
 */
export async function enterSession(
  store: Store,
  scope: Pick<ActivityScope, "sessionId" | "runId">,
  at: Standpoint,
): Promise<Session> {
  const session = await findSession(store.db, scope.sessionId);
  if (!session)
    throw fatal(
      "BadConfiguration",
      `No session ${scope.sessionId} in Postgres. Start one with: longhaul start "TASK"`,
    );
  if (session.runId === scope.runId) return session;
  const taken = await takeOver(store, scope, at);
  if (taken === "superseded") {
    throw fatal(
      "Superseded",
      `A newer run has taken over session ${scope.sessionId}; this attempt wrote nothing.`,
    );
  }
  return {
    ...session,
    epoch: taken.epoch,
    runId: scope.runId,
    restoreWorkspace: taken.epoch > session.epoch || session.restoreWorkspace,
  };
}
