/** What Postgres and Temporal say about the end of a session, where one of them does not know it. */
import { WorkflowFailedError, type Client } from "@temporalio/client";
import { ApplicationFailure } from "@temporalio/common";
import type { ClosedSession } from "../activities/contract/activities.ts";
import { unlessRecorded } from "../activities/runtime/note-missing.ts";
import type { Store } from "../activities/store/db.ts";
import { lastAnswer } from "../activities/store/transcript.ts";
import { answerText } from "../activities/contract/message.ts";
import { standingOf, type SessionStanding } from "../activities/store/session-standing.ts";
import { endAbandoned, findSession, type AbandonedEnd, type Session } from "../activities/store/sessions.ts";
import { isRunOfOthers } from "../temporal/own-runs.ts";
import { describedRun, type RunStatus, whereFound } from "../temporal/runs.ts";
import { finishedStep, temporalRuns } from "../temporal/session-runs.ts";

interface Stores {
  readonly store: Store;
  readonly client: Client;
  /** Of our workflows. */
  readonly taskQueue: string;
  /** Cleans what people said of secrets; without it, messages that only Temporal has are left there. */
  readonly clean?: ((text: string) => string) | undefined;
}

/**
 * How long a session is left alone after its row last changed: one that is being started has no run yet, and one that has just
 * ended still sends its notice. Chosen: starts take seconds, a notice 30 s at most.
 */
const GRACE_MS = { begun: 60_000, notBegun: 10 * 60_000 };

/**
 * Ends the session's row and returns the session if it is over. The run's state decides, not the row's: a terminated
 * workflow never wrote its end. A workflow that is not found in the namespace where the session ran is gone; one that may be
 * another namespace's keeps its sandbox.
 */
export async function endedSession(
  { store, client, taskQueue, clean }: Stores,
  id: string,
): Promise<Session | undefined> {
  // Read before Temporal is asked: a run that claims the session later differs from this row's.
  const session = await findSession(store.db, id);
  if (session === undefined) return undefined;
  const isOpen = session.status === "active" || session.status === "waiting";
  const newest = await describedRun(client, id);
  // Also while another installation's run has the id: ours may begin when that one has ended.
  if (newest?.status === "RUNNING") return undefined;
  if (!isOpen) return session;
  const own = { db: store.db, taskQueue };
  const isOthers = newest !== undefined && (await isRunOfOthers(client, own, id, newest));
  const ended = isOthers ? undefined : newest;
  if (ended === undefined && !isGone(await standingOf(store.db, id), client)) return undefined;
  const stores = { store, client, taskQueue, clean };
  const isOlder = ended !== undefined && (await noteMissing(stores, session, ended.runId));
  const end = ended === undefined ? GONE : await endOf(stores, { id, isOlder }, ended);
  return (await endAbandoned(store.db, id, session.runId, end)) ? session : undefined;
}

const ANSWER_GONE: AbandonedEnd = {
  status: "failed",
  type: "RecordMissing",
  message:
    "The run completed in Temporal, and Postgres, which was restored from an older copy, lacks its answer. The older conversation and the files are kept: `say` goes on with it.",
};

/** Puts on record the steps that the ended run had finished and the rows lack, as after a restore from an older copy. */
async function noteMissing(
  { store, client, taskQueue, clean }: Stores,
  session: Session,
  ended: string,
): Promise<boolean> {
  const { id, runId } = session;
  const finished = await finishedStep(client, id, ended);
  const sessionRuns =
    clean === undefined ? { said: async () => [] } : temporalRuns(client, { db: store.db, taskQueue }, clean);
  return finished > session.reached && unlessRecorded({ store, sessionRuns }, { runId }, session, finished);
}

const GONE: AbandonedEnd = {
  status: "failed",
  message:
    "Its run is gone from Temporal. The conversation is kept, and the files as they were last saved: `say` goes on with it.",
};

/** A delegate that has not begun may wait for its turn: its parent ends it. */
function isGone(standing: SessionStanding | undefined, client: Client): boolean {
  if (standing === undefined || standing.namespace !== client.options.namespace) return false;
  const { runId, isDelegate, unchangedMs } = standing;
  if (runId === null) return !isDelegate && unchangedMs > GRACE_MS.notBegun;
  return unchangedMs > GRACE_MS.begun;
}

/** How a run ended that could not store it. Its own outcome counts if it had one. */
async function endOf(
  { store, client }: Stores,
  { id, isOlder }: { readonly id: string; readonly isOlder: boolean },
  { runId, status }: { readonly runId: string; readonly status: RunStatus },
): Promise<AbandonedEnd> {
  // Its own finaliser never ran, or found no database: without this the session would stay active forever.
  const message = `The run ended in Temporal (${status.toLowerCase()}). The conversation is kept, and the files as they were last saved. A message continues the session.`;
  if (status === "TERMINATED") return { status: "cancelled", message };
  const outcome = await outcomeOf(client, id, runId);
  if (outcome === undefined) return { status: status === "CANCELLED" ? "cancelled" : "failed", message };
  if (outcome.message !== null) return outcome;
  // The rows lack the answer that ended the run; its result is the beginning of it.
  if (isOlder && outcome.status === "completed" && !outcome.result) return ANSWER_GONE;
  if (isOlder) return outcome;
  const answer = await lastAnswer(store.db, id);
  return { ...outcome, result: answer?.role === "assistant" ? answerText(answer.content) : "" };
}

/** Undefined for a run that was ended from outside, or whose result cannot be read. */
async function outcomeOf(client: Client, id: string, runId: string): Promise<AbandonedEnd | undefined> {
  try {
    const closed: ClosedSession = await client.workflow.getHandle(id, runId).result();
    return { status: closed.status, message: null, result: closed.result };
  } catch (error) {
    const cause = error instanceof WorkflowFailedError ? error.cause : undefined;
    if (!(cause instanceof ApplicationFailure) || !cause.type || cause.type === "Unexpected")
      return undefined;
    return { status: "failed", type: cause.type, message: cause.message };
  }
}

/**
 * Cancels the run of a session that has ended by this very run: Temporal has an older copy of it, which may wait for an answer that
 * was given long ago. The row stays as it is.
 */
export async function cancelIfOver({ store, client }: Stores, id: string): Promise<boolean> {
  const standing = await standingOf(store.db, id);
  if (standing?.hasEnded !== true || standing.unchangedMs < GRACE_MS.begun) return false;
  const run = await describedRun(client, id);
  if (run?.status !== "RUNNING" || run.runId !== standing.runId) return false;
  await whereFound(client.workflow.getHandle(id, run.runId).cancel());
  return true;
}
