/**
 * The lines of a session. Each epoch but the first left an older one at some place, so epochs form a tree, and a line is the path
 * from its epoch to the root. A row belongs to a line if its epoch is on that path and no epoch on it began before the row.
 */
import { and, asc, eq, inArray, isNotNull, isNull, sql } from "drizzle-orm";
import type { HistoryPlace, ResetOrigin, SessionRuns } from "../contract/session-runs.ts";
import type { Queryable } from "./db.ts";
import { isLive } from "./live-line.ts";
import {
  checkpoints,
  compactionEvents,
  delegations,
  egressRules,
  guidance,
  permissionGrants,
  questions,
  runs,
  storedMessages,
  toolCalls,
  viewMarks,
} from "./schema/index.ts";
import { assigned, part } from "./statements.ts";

type RunRow = typeof runs.$inferSelect;

/** What a reset goes back to. */
export interface ResetTarget {
  /** The epoch of the run that was reset. */
  readonly epoch: number;
  /** The run that had come to that place: the one that was reset, or an older one whose history it repeats. */
  readonly run: RunRow;
  readonly place: HistoryPlace;
  /** The reset run did nothing but continue as new: the run that claims begins where that run had ended. */
  readonly isContinued: boolean;
}

/** The session's runs, in the order in which they claimed it. */
const runsOf = (db: Queryable, sessionId: string): Promise<RunRow[]> =>
  db.select().from(runs).where(eq(runs.sessionId, sessionId)).orderBy(asc(runs.ordinal));

/**
 * The line that a reset run continues.
 * @returns undefined for a run that no reset made, or if no run had claimed the session by then
 */
export async function forkOf(
  { db, sessionRuns }: { readonly db: Queryable; readonly sessionRuns: SessionRuns },
  sessionId: string,
  runId: string,
): Promise<ResetTarget | undefined> {
  const recorded = await sessionRuns.origin(sessionId, runId);
  if (recorded === undefined) return undefined;
  const byRunId = new Map((await runsOf(db, sessionId)).map((row) => [row.runId, row]));
  const isContinued = "continues" in recorded;
  const origin = isContinued ? await unclaimedOrigin(recorded.continues) : recorded;
  if (origin === undefined) return undefined;
  let epoch: number | undefined;
  let base: string | undefined = origin.runId;
  while (base !== undefined) {
    const run = byRunId.get(base);
    epoch ??= run?.epoch;
    const before: string | undefined = origin.forks.get(base);
    if (run !== undefined && epoch !== undefined && (run.forkedFrom === null || before !== undefined))
      return { epoch, run, place: origin.place, isContinued };
    // A run that claimed nothing has no row: only Temporal knows where it came from.
    base = run?.forkedFrom ?? before ?? (await unclaimedOrigin(base))?.runId;
  }
  return undefined;

  /** Of a run without a row, or of the one that it continued. */
  async function unclaimedOrigin(of: string): Promise<ResetOrigin | undefined> {
    for (let at = of; !byRunId.has(at);) {
      const next = await sessionRuns.origin(sessionId, at);
      if (next === undefined || !("continues" in next)) return next;
      at = next.continues;
    }
    return undefined;
  }
}

/** The runs whose histories make up the live line, newest first: each went on where the next one of the list had ended. */
export async function runsOfLine(db: Queryable, sessionId: string): Promise<string[]> {
  const all = await runsOf(db, sessionId);
  const line: string[] = [];
  for (let run = all.at(-1); run !== undefined;) {
    line.push(run.runId);
    const { previous } = run;
    run = all.find((row) => row.runId === previous);
  }
  return line;
}

/** The epochs of a line, newest first. 0 marks what belongs to no line. */
async function pathOf(tx: Queryable, sessionId: string, epoch: number): Promise<number[]> {
  const all = await runsOf(tx, sessionId);
  const path: number[] = [];
  for (let at = epoch; at > 0;) {
    path.push(at);
    const parent = all.find((run) => run.epoch === at)?.parentEpoch ?? at - 1;
    at = Math.min(parent, at - 1);
  }
  return [...path, 0];
}

const MARKED = [
  storedMessages,
  compactionEvents,
  toolCalls,
  checkpoints,
  egressRules,
  permissionGrants,
  viewMarks,
];
const WITH_STATUS = [questions, delegations];

/**
 * Brings the line of an epoch back, and marks the rows of all others.
 * @param next the epoch that is about to begin on it
 * @returns false if the live rows were of that line
 */
export async function bringBack(
  tx: Queryable,
  id: string,
  { epoch, next }: { readonly epoch: number; readonly next: number },
): Promise<boolean> {
  const path = sql`${sql.param(await pathOf(tx, id, epoch))}::int[]`;
  let changed = 0;
  for (const table of MARKED) {
    const { epoch: of, sessionId, supersededBy: by, supersededEpoch } = table;
    const revived = await tx.execute(sql`update ${table} set ${assigned([supersededEpoch, null])}
      where ${sessionId} = ${id} and ${supersededEpoch} is not null and ${of} = any(${path})
      and not coalesce(${by}, '{}') && ${path}`);
    const superseded = await tx.execute(sql`update ${table}
      set ${assigned([by, sql`coalesce(${by}, '{}')`], [supersededEpoch, next])}
      where ${isLive(table, id)} and (${of} <> all(${path}) or coalesce(${by} && ${path}, false))`);
    changed += (revived.rowCount ?? 0) + (superseded.rowCount ?? 0);
  }
  for (const table of WITH_STATUS) {
    const { epoch: of, sessionId, status, supersededBy: by, supersededFrom: before } = table;
    await tx.execute(sql`update ${table} set ${assigned([status, before], [before, null])}
      where ${sessionId} = ${id} and ${status} = 'superseded' and ${before} is not null
      and ${of} = any(${path}) and not coalesce(${by}, '{}') && ${path}`);
    await tx.execute(sql`update ${table} set ${assigned([before, status], [status, "superseded"])}
      where ${sessionId} = ${id} and ${status} <> 'superseded'
      and (${of} <> all(${path}) or coalesce(${by} && ${path}, false))`);
  }
  return changed > 0;
}

/** Messages of people wait again unless the live line has them. */
export async function settleDelivered(tx: Queryable, id: string): Promise<void> {
  const isMine = eq(guidance.sessionId, id);
  const superseded = part
    .select({ sequence: storedMessages.sequence })
    .from(storedMessages)
    .where(and(eq(storedMessages.sessionId, id), isNotNull(storedMessages.supersededEpoch)));
  await tx
    .update(guidance)
    .set({ deliveredSequence: null })
    .where(and(isMine, inArray(guidance.deliveredSequence, superseded)));
  await tx
    .update(guidance)
    .set({ deliveredSequence: sql`${storedMessages.sequence}` })
    .from(storedMessages)
    .innerJoin(sql`json_array_elements_text(${storedMessages.meta}->'ids') as carried(value)`, sql`true`)
    .where(
      and(
        isMine,
        isNull(guidance.deliveredSequence),
        eq(guidance.dropped, false),
        eq(guidance.id, sql`carried.value`),
        isLive(storedMessages, id),
        eq(storedMessages.kind, "guidance"),
      ),
    );
}

/** A run's position at its first write: later rows belong to another line. */
export interface Standpoint {
  readonly step: number;
  /**
   * `model`: this step's messages are still to come; `tools`: its answer is stored, its results are not; `resume`: a new
   * run that continues from everything stored, so that only our own notes for a step that never ran are dropped.
   */
  readonly phase: "model" | "tools" | "resume";
  /**
   * The last compaction round that stays in force; `earlier`: only rounds of earlier steps do; if it is not known, those of
   * this step do as well.
   */
  readonly round?: number | "earlier";
  /** What else is known of a run that a reset made. */
  readonly fork?: ForkPoint;
}

/** How far the run that was reset had come, where its step and round do not say it. */
interface ForkPoint extends Pick<HistoryPlace, "open" | "settled" | "pruned" | "undone"> {
  /** When that run claimed the session: what is older was there when it began. */
  readonly since: Date;
  /** The live rows were of another line, which has been left for that of this run. */
  readonly isOther: boolean;
}

/** Where a reset goes back to. */
export function standpointAt({ run, place }: ResetTarget, isOther: boolean): Standpoint {
  const { open, settled, pruned, undone } = place;
  const fork = { open, settled, pruned, undone, since: run.startedAt, isOther };
  // A run that was reset to its start has everything that it found.
  if (place.step === undefined) return { step: run.startStep + 1, phase: "model", round: "earlier", fork };
  return { step: place.step, phase: place.phase, round: place.round ?? "earlier", fork };
}
