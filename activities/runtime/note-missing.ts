/** What activities do if rows are missing that their run has written: Postgres was restored from an older backup. */
import { ApplicationFailure } from "@temporalio/common";
import { superseded } from "../contract/failures.ts";
import type { ToolFacts } from "../contract/calls.ts";
import { isStepMissing, knownStep, recordMissing } from "../store/missing-steps.ts";
import { lockSession } from "../store/session-locks.ts";
import { findSession, type Session } from "../store/sessions.ts";
import type { ActivityScope } from "./activity-scope.ts";
import type { AgentDeps } from "./deps.ts";
import { interruptOpenCalls, missingEnd } from "./interrupt-open-calls.ts";

interface Deps extends Pick<AgentDeps, "store"> {
  readonly sessionRuns: Pick<AgentDeps["sessionRuns"], "said">;
}

/**
 * Puts on record that steps up to `finished` are missing, unless it is, or they are not. Calls that the rows show as open ended long
 * ago; what people have said since is read from Temporal.
 * @returns false if nothing was missing, or it was on record
 * @throws Superseded (fatal) if a newer run has claimed the session
 */
export async function unlessRecorded(
  { store, sessionRuns }: Deps,
  { runId }: { readonly runId: string | undefined },
  { id, epoch }: Pick<Session, "id" | "epoch">,
  finished: number,
): Promise<boolean> {
  if ((await knownStep(store.db, id)) >= finished) return false;
  // Done before the row is locked: histories may be long, and Temporal unreachable.
  const messages = await sessionRuns.said(id, runId);
  await store.db.transaction(async (tx) => {
    const claim = await lockSession(tx, id);
    if ((claim?.runId ?? undefined) !== runId) throw superseded("this attempt wrote nothing");
    const known = await knownStep(tx, id);
    if (known >= finished) return;
    await interruptOpenCalls(tx, id, epoch, { endOf: missingEnd, goesOn: true });
    await recordMissing(tx, { id, epoch }, { from: known + 1, to: finished }, messages);
  });
  return true;
}

/**
 * Runs the body of an activity about one call of a step. The rows may have been replaced by older ones since the body began.
 * @param missing what the workflow learns instead if the step is missing: there is no call any more, and the run goes on
 */
export async function unlessMissing<T>(
  deps: Deps,
  scope: Pick<ActivityScope, "sessionId" | "runId">,
  step: number,
  { body, missing }: { readonly body: () => Promise<T>; readonly missing: T },
): Promise<T> {
  try {
    return await body();
  } catch (error) {
    if (!(error instanceof ApplicationFailure && error.type === "NoSuchCall")) throw error;
    const { db } = deps.store;
    const session = await findSession(db, scope.sessionId);
    if (session !== undefined) await unlessRecorded(deps, scope, session, step);
    if (await isStepMissing(db, scope.sessionId, step)) return missing;
    throw error;
  }
}

/** The facts of a call whose step is missing. No other call has this hash. */
export const missingFacts = ({
  step,
  index,
}: {
  readonly step: number;
  readonly index: number;
}): ToolFacts => ({ outcome: "unknown", tokens: 0, ms: 0, hash: `s${step}c${index}` });
