/**
 * The lines of a session. Each epoch but the first left an older one at some place, so epochs form a tree, and a line is the path
 * from its epoch to the root. A row belongs to a line if its epoch is on that path and no epoch on it began before the row.
 */
import { asc, eq, sql } from "drizzle-orm";
import type { Place, ResetOrigin, SessionRuns } from "../contract/session-runs.ts";
import type { Queryable } from "./db.ts";
import { runs } from "./schema/index.ts";

type RunRow = typeof runs.$inferSelect;

/** What a reset goes back to. */
export interface Fork {
  /** The epoch of the run that was reset. */
  readonly epoch: number;
  /** The run that had come to that place: the one that was reset, or an older one whose history it repeats. */
  readonly run: RunRow;
  readonly place: Place;
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
): Promise<Fork | undefined> {
  const found = await sessionRuns.origin(sessionId, runId);
  if (found === undefined) return undefined;
  const known = new Map((await runsOf(db, sessionId)).map((row) => [row.runId, row]));
  const isContinued = "continues" in found;
  const origin = isContinued ? await unclaimedOrigin(found.continues) : found;
  if (origin === undefined) return undefined;
  let epoch: number | undefined;
  let base: string | undefined = origin.runId;
  while (base !== undefined) {
    const run = known.get(base);
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
    for (let at = of; !known.has(at);) {
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
    const { previous, ordinal, forkedFrom } = run;
    // Rows of an older version do not tell: any run before it may be of its line.
    run = all.findLast((row) =>
      previous === null ? forkedFrom === null && row.ordinal < ordinal : row.runId === previous,
    );
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
  "stored_messages",
  "compaction_events",
  "tool_calls",
  "checkpoints",
  "egress_rules",
  "permission_grants",
  "view_marks",
];
const WITH_STATUS = ["questions", "delegations"];

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
    const name = sql.identifier(table);
    // A row that an older version marked has one mark, which is that of the epoch that began before it.
    const by = sql`coalesce(superseded_by, array[superseded_epoch])`;
    const back = await tx.execute(sql`update ${name} set superseded_by = ${by}, superseded_epoch = null
      where session_id = ${id} and superseded_epoch is not null and epoch = any(${path}) and not ${by} && ${path}`);
    const gone =
      await tx.execute(sql`update ${name} set superseded_by = coalesce(superseded_by, '{}'), superseded_epoch = ${next}
      where session_id = ${id} and superseded_epoch is null
      and (epoch <> all(${path}) or coalesce(superseded_by && ${path}, false))`);
    changed += (back.rowCount ?? 0) + (gone.rowCount ?? 0);
  }
  for (const table of WITH_STATUS) {
    const name = sql.identifier(table);
    await tx.execute(sql`update ${name} set status = superseded_from, superseded_from = null
      where session_id = ${id} and status = 'superseded' and superseded_from is not null
      and epoch = any(${path}) and not coalesce(superseded_by, '{}') && ${path}`);
    await tx.execute(sql`update ${name} set superseded_from = status, status = 'superseded'
      where session_id = ${id} and status <> 'superseded'
      and (epoch <> all(${path}) or coalesce(superseded_by && ${path}, false))`);
  }
  return changed > 0;
}

/** Messages of people wait again unless the live line has them. */
export async function settleDelivered(tx: Queryable, id: string): Promise<void> {
  await tx.execute(sql`update guidance set delivered_sequence = null where session_id = ${id}
    and delivered_sequence in (
      select sequence from stored_messages where session_id = ${id} and superseded_epoch is not null)`);
  await tx.execute(sql`update guidance g set delivered_sequence = m.sequence
    from stored_messages m, json_array_elements_text(m.meta->'ids') as carried(id)
    where g.session_id = ${id} and g.delivered_sequence is null and not g.dropped and g.id = carried.id
    and m.session_id = ${id} and m.superseded_epoch is null and m.kind = 'guidance'`);
}
