/** Which run may write to a session. */
import { retryable } from "../contract/failures.ts";
import { and, desc, eq, exists, gte, isNotNull, or, sql } from "drizzle-orm";
import { cutChars } from "../text/cut.ts";
import type { Guidance } from "../contract/guidance.ts";
import type { SessionRuns } from "../contract/session-runs.ts";
import { forgetSavesBegun } from "./sandboxes.ts";
import type { Queryable, Store } from "./db.ts";
import { appendEvents } from "./events.ts";
import { orphansOf } from "./delegations.ts";
import { recoverGuidance } from "./guidance.ts";
import type { EventType } from "./event.ts";
import { events, runs, sessions } from "./schema/index.ts";
import { ANY, part } from "./statements.ts";
import { endAbandoned } from "./sessions.ts";
import { lockRun } from "./session-locks.ts";
import { bringBack, forkOf, type ResetTarget, standpointAt, type Standpoint } from "./lines.ts";
import { supersede } from "./supersede.ts";

const TASK_CHARS = 120;
/** A run that claims while Temporal is being asked is rare: one retry is enough. */
const MAX_TRIES = 5;

export interface Takeover {
  readonly sessionId: string;
  readonly runId: string;
  /** First run of the chain, if the caller knows it. */
  readonly chain?: string;
}

export interface Taken {
  readonly epoch: number;
  /** Rows of an abandoned line were found. */
  readonly wentBack: boolean;
}

/** The run that may write, if any. */
export async function runInCharge(db: Queryable, sessionId: string): Promise<string | undefined> {
  const [row] = await db.select({ runId: sessions.runId }).from(sessions).where(eq(sessions.id, sessionId));
  return row?.runId ?? undefined;
}

/**
 * Makes a run the one that may write (invariant 7). A run that was never seen takes the session over: rows from the point
 * at which it continues are marked as superseded, never deleted, and a new epoch begins if there were any. Rounds and
 * prunes from there on are undone, the workspace will be restored, and watchers see an event. People's messages in those
 * rows, and those to runs that were ended from outside, are queued for this run. A run that a reset made continues the line of the
 * run that was reset, from the place at which its history left it: `at` counts for other runs.
 * @returns the epoch in force, or `superseded` if a newer run has claimed the session, or Temporal has a newer run
 */
export async function takeOver(
  { store, sessionRuns }: { readonly store: Pick<Store, "db">; readonly sessionRuns: SessionRuns },
  run: Takeover,
  at: Standpoint,
): Promise<Taken | "superseded"> {
  const { namespace } = sessionRuns;
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const { isKnown, inCharge } = await standingOf(store.db, run);
    if (isKnown && inCharge !== run.runId) return "superseded";
    // Done before the row is locked: histories may be long, and Temporal unreachable.
    const isTakeover = inCharge !== run.runId;
    const [isCurrent, unkept, fork] = await Promise.all([
      !isTakeover || sessionRuns.isCurrent(run.sessionId, run.runId),
      isTakeover ? sessionRuns.unkept(run.sessionId, { inCharge, asking: run.runId }) : [],
      // A session without a run has no line to go back to.
      isTakeover && inCharge !== undefined
        ? forkOf({ db: store.db, sessionRuns }, run.sessionId, run.runId)
        : undefined,
    ]);
    const outcome = await store.db.transaction((tx) =>
      take(tx, run, at, { inCharge, isCurrent, unkept, fork, namespace }),
    );
    if (outcome === "changed meanwhile") continue;
    if (outcome !== "superseded" && outcome.wentBack) await endOrphans({ store, sessionRuns }, run.sessionId);
    return outcome;
  }
  throw retryable(
    "Unexpected",
    `Session ${run.sessionId} was taken over by one run after the other; this attempt wrote nothing and is tried again.`,
  );
}

/**
 * Cancels delegates whose calls were superseded: Temporal does not end children on a reset. A delegate that cannot be reached
 * ends itself with its next activity.
 */
export async function endOrphans(
  { store, sessionRuns }: { readonly store: Pick<Store, "db">; readonly sessionRuns: SessionRuns },
  sessionId: string,
): Promise<void> {
  const orphans = await orphansOf(store.db, sessionId);
  await Promise.allSettled(orphans.map(({ id }) => sessionRuns.cancel(id)));
  // None of these runs stores its own end; a run that is just starting tries to claim the session, and is refused.
  const end = {
    status: "cancelled",
    message: "Its parent went back to an earlier step before it began.",
  } as const;
  for (const { id } of orphans.filter(({ hasBegun }) => !hasBegun))
    await endAbandoned(store.db, id, undefined, end);
}

/** Whether the session's rows have the run, or one of the chain that a reset or continue-as-new keeps. */
export async function hasClaimed(
  db: Queryable,
  sessionId: string,
  { runId, chain }: { readonly runId: string; readonly chain: string },
): Promise<boolean> {
  const isOfChain = or(eq(runs.runId, runId), eq(runs.chain, chain));
  const rows = await db
    .select(ANY)
    .from(runs)
    .where(and(eq(runs.sessionId, sessionId), isOfChain))
    .limit(1);
  return rows.length > 0;
}

/** The run in charge, and whether the given run ever was. One statement: the run's other activities may claim it meanwhile. */
async function standingOf(
  db: Queryable,
  { sessionId, runId }: Takeover,
): Promise<{ readonly inCharge: string | undefined; readonly isKnown: boolean }> {
  const [row] = await db
    .select({
      inCharge: sessions.runId,
      isKnown: sql<boolean>`${exists(
        part
          .select(ANY)
          .from(runs)
          .where(and(eq(runs.sessionId, sessionId), eq(runs.runId, runId))),
      )}`,
    })
    .from(sessions)
    .where(eq(sessions.id, sessionId));
  return { inCharge: row?.inCharge ?? undefined, isKnown: row?.isKnown ?? false };
}

/** Temporal's answer, valid as long as the session still has the run that was asked about. */
interface Circumstances {
  readonly inCharge: string | undefined;
  readonly isCurrent: boolean;
  readonly unkept: readonly Guidance[];
  /** What the run repeats, if a reset made it. */
  readonly fork: ResetTarget | undefined;
  readonly namespace: string | undefined;
}

/** @returns `changed meanwhile` if Temporal must be asked again: an ended run must not take over after its successor has */
async function take(
  tx: Queryable,
  run: Takeover,
  standpoint: Standpoint,
  circumstances: Circumstances,
): Promise<Taken | "superseded" | "changed meanwhile"> {
  const [session] = await tx
    .select({
      epoch: sessions.epoch,
      runId: sessions.runId,
      task: sessions.task,
      model: sql<string>`${sessions.config}->>'model'`,
    })
    .from(sessions)
    .where(eq(sessions.id, run.sessionId))
    .for("update");
  if (!session || session.runId === run.runId) return { epoch: session?.epoch ?? 1, wentBack: false };
  if (await wasInCharge(tx, run)) return "superseded";
  if (circumstances.inCharge !== (session.runId ?? undefined)) return "changed meanwhile";
  if (!circumstances.isCurrent) return "superseded";
  const next = session.epoch + 1;
  const { fork } = circumstances;
  const base = fork?.epoch ?? session.epoch;
  const isOther = base !== session.epoch && (await bringBack(tx, run.sessionId, { epoch: base, next }));
  const at = fork === undefined ? standpoint : standpointAt(fork, isOther);
  const dropped = await supersede(tx, run.sessionId, next, at);
  const epoch = dropped ? next : session.epoch;
  await recoverGuidance(tx, { sessionId: run.sessionId, epoch, step: at.step - 1 }, circumstances.unkept);
  const follows = fork?.isContinued === true ? fork.run.runId : fork?.run.previous;
  const previous = fork === undefined ? session.runId : (follows ?? null);
  const parentEpoch = dropped ? base : null;
  await insertRun(tx, run, {
    epoch,
    parentEpoch,
    startStep: at.step - 1,
    previous,
    forkedFrom: fork === undefined || fork.isContinued ? null : fork.run.runId,
  });
  await tx
    .update(sessions)
    .set({
      runId: run.runId,
      epoch,
      ...NOT_ENDED,
      updatedAt: sql`now()`,
      namespace: circumstances.namespace,
      restoreWorkspace: dropped || undefined,
    })
    .where(eq(sessions.id, run.sessionId));
  await forgetSavesBegun(tx, run.sessionId);
  if (dropped) {
    const { task, model } = session;
    const data = { task: cutChars(task, TASK_CHARS), model, continued: true, resetTo: at.step };
    await appendEvents(tx, run.sessionId, epoch, [{ type: "session:started", step: at.step - 1, data }]);
  }
  return { epoch, wentBack: dropped };
}

/** What the end of the run before it had set. */
const NOT_ENDED = { status: "active", endedAt: null, result: null, error: null, verified: null } as const;

async function insertRun(
  tx: Queryable,
  { sessionId, runId, chain = runId }: Takeover,
  row: Pick<typeof runs.$inferInsert, "epoch" | "parentEpoch" | "startStep" | "previous" | "forkedFrom">,
): Promise<void> {
  const ordinal = sql`${part
    .select({ next: sql`coalesce(max(${runs.ordinal}), 0) + 1` })
    .from(runs)
    .where(eq(runs.sessionId, sessionId))}`;
  await tx.insert(runs).values({ ...row, sessionId, runId, chain, ordinal });
}

/** Keeps other runs from claiming the session. @returns false if the run had the session and another run has it now */
export async function lockUnlessSuperseded(
  tx: Queryable,
  sessionId: string,
  runId: string,
): Promise<boolean> {
  return (await lockRun(tx, sessionId, runId)) || !(await wasInCharge(tx, { sessionId, runId }));
}

/** When the run claimed the session. */
export async function claimTime(db: Queryable, sessionId: string, runId: string): Promise<Date | undefined> {
  const [run] = await db
    .select({ at: runs.startedAt })
    .from(runs)
    .where(and(eq(runs.sessionId, sessionId), eq(runs.runId, runId)));
  return run?.at;
}

/** Whether the run ever had the session. */
async function wasInCharge(db: Queryable, { sessionId, runId }: Takeover): Promise<boolean> {
  const rows = await db
    .select({ runId: runs.runId })
    .from(runs)
    .where(and(eq(runs.sessionId, sessionId), eq(runs.runId, runId)));
  return rows.length > 0;
}

/** Whether the beginning of a run was announced to watchers. */
export async function hasBegun(db: Queryable, sessionId: string, runId: string): Promise<boolean> {
  const startType = "session:started" satisfies EventType;
  const rows = await db
    .select({ seq: events.seq })
    .from(events)
    .innerJoin(runs, and(eq(runs.sessionId, events.sessionId), gte(events.at, runs.startedAt)))
    .where(and(eq(events.sessionId, sessionId), eq(events.type, startType), eq(runs.runId, runId)))
    .limit(1);
  return rows.length > 0;
}

/** All runs that ever had the session, newest first. */
export async function runIdsOf(db: Queryable, sessionId: string): Promise<string[]> {
  const rows = await db
    .select({ runId: runs.runId })
    .from(runs)
    .where(eq(runs.sessionId, sessionId))
    .orderBy(desc(runs.ordinal));
  return rows.map((row) => row.runId);
}

/** The runs that ended with all that they wrote: those that another one followed, and the one in charge once the session has ended. */
export async function endedRunsOf(db: Queryable, sessionId: string): Promise<string[]> {
  const isOther = sql`${runs.runId} is distinct from ${sessions.runId}`;
  const rows = await db
    .select({ runId: runs.runId })
    .from(runs)
    .innerJoin(sessions, eq(sessions.id, runs.sessionId))
    .where(and(eq(runs.sessionId, sessionId), or(isOther, isNotNull(sessions.endedAt))));
  return rows.map((row) => row.runId);
}

/** The steps that were finished when a chain of runs began, if one of its runs was seen before (a reset to its start). */
export async function chainStart(
  db: Queryable,
  sessionId: string,
  chain: string,
): Promise<number | undefined> {
  const [row] = await db
    .select({ step: runs.startStep })
    .from(runs)
    .where(and(eq(runs.sessionId, sessionId), eq(runs.chain, chain)))
    .orderBy(runs.ordinal)
    .limit(1);
  return row?.step;
}
