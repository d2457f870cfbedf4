/** A session's sandbox: its host, how far its files are saved, and the model's pending notice. */
import { and, eq, exists, gt, isNull, lt, max, or, sql, desc, inArray } from "drizzle-orm";
import { markGone } from "./background.ts";
import { isLive } from "./live-line.ts";
import type { Queryable } from "./db.ts";
import { ANY, part, prepared } from "./statements.ts";
import { deletedSessions, sandboxes, sessions, toolCalls, events } from "./schema/index.ts";
import type { EventData } from "./event.ts";

/** Identifies a sandbox: with another volume, container or start of its processes it is another sandbox. */
export interface SandboxIdentity {
  /** Name of its host, for people. */
  readonly host: string;
  readonly volume: string;
  readonly container: string;
  readonly boot: string;
  /** The image it runs from; for people, not part of the identity. */
  readonly image?: string | null | undefined;
  /** Key of the base that its workspace stands on; not part of the identity, since the volume is another one with each. */
  readonly base?: string | null | undefined;
}

export type SandboxRow = typeof sandboxes.$inferSelect;

export async function findSandbox(db: Queryable, sessionId: string): Promise<SandboxRow | undefined> {
  const [row] = await db.select().from(sandboxes).where(eq(sandboxes.sessionId, sessionId));
  return row;
}

export interface SandboxOwner {
  readonly id: string;
  /** The volume with the session's files, if any is known. */
  readonly volume: string | undefined;
  /** No session with this id exists. */
  readonly isGone: boolean;
  readonly isDeleted: boolean;
  /** It is saved and stopped: whether its time is over. Undefined if it is not. */
  readonly isParkedTooLong: boolean | undefined;
}

/** The recorded state of these sessions' sandboxes, by one query, in this order. */
export async function sandboxOwners(db: Queryable, ids: readonly string[]): Promise<SandboxOwner[]> {
  const sessionId = sql<string>`asked.session`;
  const rows = await db
    .select({
      id: sessionId,
      volume: sandboxes.volume,
      isGone: sql<boolean>`${sessions.id} is null`,
      isDeleted: sql<boolean>`${deletedSessions.id} is not null`,
      isParkedTooLong: sql<boolean | null>`${sandboxes.parkedUntil} < now()`,
    })
    .from(sql`unnest(${sql.param([...ids])}::text[]) with ordinality as asked(session, place)`)
    .leftJoin(sessions, eq(sessions.id, sessionId))
    .leftJoin(sandboxes, eq(sandboxes.sessionId, sessionId))
    .leftJoin(deletedSessions, eq(deletedSessions.id, sessionId))
    .orderBy(sql`asked.place`);
  return rows.map(({ volume, isParkedTooLong, ...row }) => ({
    ...row,
    volume: volume ?? undefined,
    isParkedTooLong: isParkedTooLong ?? undefined,
  }));
}

/** Records the sandbox that has the session's files. `savedStep` undefined keeps the stored one. */
export async function recordSandbox(
  db: Queryable,
  sessionId: string,
  sandbox: SandboxIdentity & {
    readonly taskQueue: string | undefined;
    readonly savedStep?: number | undefined;
  },
): Promise<void> {
  const { host, volume, container, boot, savedStep } = sandbox;
  const [taskQueue, image, baseKey] = [
    sandbox.taskQueue ?? null,
    sandbox.image ?? null,
    sandbox.base ?? null,
  ];
  const location = {
    host,
    volume,
    container,
    boot,
    taskQueue,
    image,
    baseKey,
    closedRun: null,
    ...NOT_PARKED,
  };
  const set = savedStep === undefined ? location : { ...location, savedStep };
  await db
    .insert(sandboxes)
    .values({ sessionId, ...set })
    .onConflictDoUpdate({ target: sandboxes.sessionId, set });
}

const NOT_PARKED = { parkedAt: null, parkedUntil: null, parkedBytes: null, unparked: null } as const;

/** Records that a stopped sandbox is kept for so long, in the transaction that marks it as closed. */
export async function markParked(
  db: Queryable,
  sessionId: string,
  { keptMs, bytes }: { readonly keptMs: number; readonly bytes: number | undefined },
): Promise<void> {
  const parkedUntil = sql`now() + ${keptMs} * interval '1 ms'`;
  await db
    .update(sandboxes)
    .set({ parkedAt: sql`now()`, parkedUntil, parkedBytes: bytes ?? null, unparked: null })
    .where(eq(sandboxes.sessionId, sessionId));
}

/** It is removed, or about to be. @param why for people, if it was to be kept for longer or its time is over */
export async function markUnparked(db: Queryable, sessionId: string, why?: string): Promise<void> {
  await db
    .update(sandboxes)
    .set({ ...NOT_PARKED, unparked: why ?? null })
    .where(eq(sandboxes.sessionId, sessionId));
}

/** Stored in place of the run in a sandbox's row, so that the same run may open it again. */
export const PARKED = "parked";

/**
 * Records that a run has saved the session's sandbox for the last time, before the sandbox is removed: a later attempt of the
 * run removes the sandbox, and saves or opens nothing. A session that never had a sandbox gets a row that names none.
 */
export async function markClosed(db: Queryable, sessionId: string, closedRun: string): Promise<void> {
  await db
    .insert(sandboxes)
    .values({ sessionId, host: "", volume: "", container: "", boot: "", closedRun })
    .onConflictDoUpdate({ target: sandboxes.sessionId, set: { closedRun } });
  await markGone(db, sessionId, closedRun === PARKED);
}

/** Whether this is still the sandbox with the session's files, with the same processes, for this run. */
export async function isCurrentSandbox(
  db: Queryable,
  session: { readonly id: string; readonly runId: string | undefined },
  { volume, container, boot }: SandboxIdentity,
): Promise<boolean> {
  const identity = { id: session.id, runId: session.runId ?? null, volume, container, boot };
  return (await currentQuery(db).execute(identity)).length > 0;
}

/** Prepared because it runs before and after each call. */
const currentQuery = prepared((db) =>
  db
    .select({ id: sandboxes.sessionId })
    .from(sandboxes)
    .innerJoin(sessions, eq(sessions.id, sandboxes.sessionId))
    .where(
      and(
        eq(sandboxes.sessionId, sql.placeholder("id")),
        eq(sandboxes.volume, sql.placeholder("volume")),
        eq(sandboxes.container, sql.placeholder("container")),
        eq(sandboxes.boot, sql.placeholder("boot")),
        isNull(sandboxes.closedRun),
        eq(sessions.restoreWorkspace, false),
        sql`${sessions.runId} is not distinct from ${sql.placeholder("runId")}`,
      ),
    )
    .prepare("current_sandbox"),
);

/** Appends to the notice for the next step boundary. */
export async function addNotice(db: Queryable, sessionId: string, text: string): Promise<void> {
  await db
    .update(sandboxes)
    .set({ notice: sql`concat_ws(E'\n', ${sandboxes.notice}, ${text}::text)` })
    .where(eq(sandboxes.sessionId, sessionId));
}

/** As `addNotice`, unless the pending notice has this text already. */
export async function addNoticeOnce(db: Queryable, sessionId: string, text: string): Promise<void> {
  await db
    .update(sandboxes)
    .set({ notice: sql`concat_ws(E'\n', ${sandboxes.notice}, ${text}::text)` })
    .where(
      and(
        eq(sandboxes.sessionId, sessionId),
        sql`strpos(coalesce(${sandboxes.notice}, ''), ${text}::text) = 0`,
      ),
    );
}

/** Replaces a part of the pending notice, if it has that part. */
export async function mendNotice(db: Queryable, sessionId: string, part: string, by: string): Promise<void> {
  await db
    .update(sandboxes)
    .set({ notice: sql`replace(${sandboxes.notice}, ${part}::text, ${by}::text)` })
    .where(eq(sandboxes.sessionId, sessionId));
}

/** Replaces the pending notice. */
export async function setNotice(db: Queryable, sessionId: string, text: string): Promise<void> {
  await db.update(sandboxes).set({ notice: text }).where(eq(sandboxes.sessionId, sessionId));
}

/** Takes the pending notice, once, in the transaction that stores it for the model. */
export async function takeNotice(db: Queryable, sessionId: string): Promise<string | undefined> {
  const [row] = await db
    .select({ notice: sandboxes.notice })
    .from(sandboxes)
    .where(eq(sandboxes.sessionId, sessionId))
    .for("update");
  if (row?.notice == null) return undefined;
  await db.update(sandboxes).set({ notice: null }).where(eq(sandboxes.sessionId, sessionId));
  return row.notice;
}

/**
 * Counts a save before it begins, if fewer than `limit` saves have begun and not ended.
 * @returns false if the limit is reached, or the session has no sandbox
 */
export async function beginSave(db: Queryable, sessionId: string, limit: number): Promise<boolean> {
  return (await beginQuery(db).execute({ sessionId, limit })).length > 0;
}

const beginQuery = prepared((db) =>
  db
    .update(sandboxes)
    .set({ savesBegun: sql`${sandboxes.savesBegun} + 1` })
    .where(
      and(
        eq(sandboxes.sessionId, sql.placeholder("sessionId")),
        lt(sandboxes.savesBegun, sql.placeholder("limit")),
      ),
    )
    .returning({ id: sandboxes.sessionId })
    .prepare("begin_save"),
);

/** Resets the count of begun saves, after a save has ended or when another run begins. Writes nothing if the count is 0. */
export async function forgetSavesBegun(db: Queryable, sessionId: string): Promise<void> {
  await forgetQuery(db).execute({ sessionId });
}

const forgetQuery = prepared((db) =>
  db
    .update(sandboxes)
    .set({ savesBegun: 0 })
    .where(and(eq(sandboxes.sessionId, sql.placeholder("sessionId")), gt(sandboxes.savesBegun, 0)))
    .prepare("forget_saves_begun"),
);

/** Records that all calls up to `step` have ended and their files are in a checkpoint. */
export async function markSaved(db: Queryable, sessionId: string, step: number): Promise<void> {
  await db
    .update(sandboxes)
    .set({ savedStep: step, savesBegun: 0 })
    .where(
      and(eq(sandboxes.sessionId, sessionId), or(isNull(sandboxes.savedStep), lt(sandboxes.savedStep, step))),
    );
}

/** As `markSaved`, in one statement, if the session still has that epoch and that sandbox. */
export async function markUnchanged(
  db: Queryable,
  at: { readonly sessionId: string; readonly epoch: number; readonly step: number },
  sandbox: Pick<SandboxIdentity, "volume">,
): Promise<void> {
  await unchangedQuery(db).execute({ ...at, volume: sandbox.volume });
}

const unchangedQuery = prepared((db) =>
  db
    .update(sandboxes)
    .set({ savedStep: sql`${sql.placeholder("step")}`, savesBegun: 0 })
    .where(
      and(
        eq(sandboxes.sessionId, sql.placeholder("sessionId")),
        eq(sandboxes.volume, sql.placeholder("volume")),
        lt(sql`coalesce(${sandboxes.savedStep}, -1)`, sql.placeholder("step")),
        exists(
          part
            .select(ANY)
            .from(sessions)
            .where(and(eq(sessions.id, sandboxes.sessionId), eq(sessions.epoch, sql.placeholder("epoch")))),
        ),
      ),
    )
    .prepare("mark_unchanged"),
);

/** Records which files are in no save, so that each is reported once. */
export async function keepLeftOut(
  db: Queryable,
  sessionId: string,
  leftOut: SandboxRow["leftOut"],
): Promise<void> {
  await db.update(sandboxes).set({ leftOut }).where(eq(sandboxes.sessionId, sessionId));
}

/** The newest step of the live line that has begun a call which may change files; undefined if none has. */
export async function lastChangingStep(db: Queryable, sessionId: string): Promise<number | undefined> {
  const [row] = await db
    .select({ step: max(toolCalls.step) })
    .from(toolCalls)
    // Calls that only read are never claimed.
    .where(and(isLive(toolCalls, sessionId), gt(toolCalls.fence, 0)));
  return row?.step ?? undefined;
}

export interface KnownSetUp {
  readonly started: boolean;
  readonly ended: EventData["setup:ended"] | undefined;
  /** Another container of the session was set up earlier. */
  readonly again: boolean;
  /** This container is created from an image built from the workspace's Dockerfile. */
  readonly built: boolean;
  /** The key of that image, for this container or the newest before it. */
  readonly image: string | undefined;
}

/** @param container which sandbox it is about */
export async function findSetUp(db: Queryable, sessionId: string, container: string): Promise<KnownSetUp> {
  const rows = await db
    .select({ type: events.type, data: events.data })
    .from(events)
    .where(
      and(
        eq(events.sessionId, sessionId),
        inArray(events.type, ["setup:started", "setup:built", "setup:ended"]),
      ),
    )
    .orderBy(desc(events.seq));
  // These rows were written by this program.
  const all = rows as {
    readonly type: string;
    readonly data: { readonly container: string; readonly image?: string };
  }[];
  const ofContainer = all.filter(({ data }) => data.container === container);
  const endEvent = ofContainer.find(({ type }) => type === "setup:ended");
  return {
    started: ofContainer.length > 0,
    ended: endEvent?.data as EventData["setup:ended"] | undefined,
    again: all.some(({ type, data }) => type === "setup:ended" && data.container !== container),
    built: ofContainer.some(({ type }) => type === "setup:built"),
    image: all.find(({ type }) => type === "setup:built")?.data.image,
  };
}
