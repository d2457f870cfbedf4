/** Batches and their items. */
import { and, asc, desc, eq, gt, inArray, isNull, sql } from "drizzle-orm";
import type { RunConfig } from "../config/agent-config.ts";
import type { AttemptsOrder } from "../contract/attempts.ts";
import type { BatchFigures, EndedItem } from "../contract/batch.ts";
import type { FailureType } from "../contract/failures.ts";
import type { Queryable } from "./db.ts";
import { batches, batchItems, modelCalls, sessions, schedules } from "./schema/index.ts";
import type { NewSession } from "./sessions.ts";

export type Batch = typeof batches.$inferSelect;

/** The data from which an item's session is created. */
type ItemStart = Omit<NewSession, "id" | "workspace">;

/** An item whose session must be started. */
export interface NewItem {
  readonly itemId: string;
  readonly ordinal: number;
  readonly digest: string;
  readonly sessionId: string;
  readonly attempt: number;
  readonly start: ItemStart;
  readonly workspace: NewSession["workspace"];
}

/** An item as people see it. */
export interface ItemRow {
  readonly itemId: string;
  readonly ordinal: number;
  readonly digest: string;
  readonly sessionId: string | null;
  readonly attempt: number;
  readonly status: string;
  readonly failure: string | null;
  /** The status of its session; null if that does not exist yet. */
  readonly sessionStatus: string | null;
  readonly task: string | null;
}

export async function findBatch(db: Queryable, id: string): Promise<Batch | undefined> {
  const [row] = await db.select().from(batches).where(eq(batches.id, id));
  return row;
}

/** Running batches first, then the newest. */
export async function listBatches(db: Queryable, limit: number): Promise<Batch[]> {
  return db
    .select()
    .from(batches)
    .orderBy(sql`${batches.endedAt} is not null`, desc(batches.createdAt), asc(batches.id))
    .limit(limit);
}

/** In the order of the file; items that are no longer in it come first, at place 0. */
export async function listItems(db: Queryable, batchId: string): Promise<ItemRow[]> {
  return db
    .select({
      itemId: batchItems.itemId,
      ordinal: batchItems.ordinal,
      digest: batchItems.digest,
      sessionId: batchItems.sessionId,
      attempt: batchItems.attempt,
      status: batchItems.status,
      failure: batchItems.failure,
      sessionStatus: sessions.status,
      task: sql<string | null>`coalesce(${sessions.task}, ${batchItems.start}->>'task')`,
    })
    .from(batchItems)
    .leftJoin(sessions, eq(sessions.id, batchItems.sessionId))
    .where(eq(batchItems.batchId, batchId))
    .orderBy(asc(batchItems.ordinal), asc(batchItems.itemId));
}

/** Starts or restarts the batch. */
export async function openBatch(
  db: Queryable,
  {
    id,
    attempts = null,
    ...settings
  }: Pick<Batch, "id" | "owner" | "concurrency" | "stopAfter" | "maxCostUsd"> & {
    readonly attempts?: AttemptsOrder | null;
  },
): Promise<void> {
  const set = { ...settings, attempts, status: "running", endedAt: null, chosen: null };
  await db
    .insert(batches)
    .values({ id, ...set })
    .onConflictDoUpdate({ target: batches.id, set });
}

/** Stores an item, new or repeated, whose session has not begun. */
export async function saveItem(
  db: Queryable,
  batchId: string,
  { itemId, workspace, ...item }: NewItem,
): Promise<void> {
  const { manifest = null, pack = null } = workspace ?? {};
  const set = { ...item, manifest, pack, status: "pending", failure: null };
  await db
    .insert(batchItems)
    .values({ batchId, itemId, ...set })
    .onConflictDoUpdate({ target: [batchItems.batchId, batchItems.itemId], set });
}

/** Updates the place in the file; 0 for an item that is no longer in it. */
export async function placeItem(
  db: Queryable,
  batchId: string,
  { itemId, ordinal }: Pick<NewItem, "itemId" | "ordinal">,
): Promise<void> {
  await db
    .update(batchItems)
    .set({ ordinal })
    .where(and(eq(batchItems.batchId, batchId), eq(batchItems.itemId, itemId)));
}

/** Whether an id cannot be that of an item's session: it belongs to a session, also another person's, or to another item. */
export async function isTakenId(
  db: Queryable,
  id: string,
  { batchId, itemId }: { readonly batchId: string; readonly itemId: string },
): Promise<boolean> {
  const { rows } = await db.execute(sql`select longhaul_taken(array[${id}]::text[], ${batchId}, ${itemId})`);
  return rows.length > 0;
}

export interface NextItem {
  readonly itemId: string;
  readonly ordinal: number;
  readonly sessionId: string;
  /** Null if its session was already created. */
  readonly start: ItemStart | null;
  /** The configuration of its session; null if the batch's owner has none of that id. */
  readonly config: RunConfig | null;
  /** Whether its session has had a run. */
  readonly isBegun: boolean;
}

/** The next items that have not ended, including those that an earlier run of the batch began. */
export async function nextItems(
  db: Queryable,
  batchId: string,
  { after, count }: { readonly after: number; readonly count: number },
): Promise<NextItem[]> {
  const rows = await db
    .select({
      itemId: batchItems.itemId,
      ordinal: batchItems.ordinal,
      sessionId: sql<string>`coalesce(${batchItems.sessionId}, '')`,
      start: batchItems.start,
      config: sessions.config,
      isBegun: sql<boolean>`coalesce(${sessions.runId} is not null or ${sessions.endedAt} is not null, false)`,
    })
    .from(batchItems)
    .innerJoin(batches, eq(batches.id, batchItems.batchId))
    .leftJoin(
      sessions,
      and(
        eq(sessions.id, batchItems.sessionId),
        isNull(sessions.parentId),
        sql`${sessions.owner} is not distinct from ${batches.owner}`,
      ),
    )
    .where(
      and(
        eq(batchItems.batchId, batchId),
        gt(batchItems.ordinal, after),
        inArray(batchItems.status, ["pending", "running"]),
      ),
    )
    .orderBy(asc(batchItems.ordinal))
    .limit(count);
  return rows.map((row) => ({
    ...row,
    start: row.start as ItemStart | null,
    config: row.config as RunConfig | null,
  }));
}

/** The initial files of an item that has not begun: loaded for one item at a time, as they may be large. */
export async function itemFiles(
  db: Queryable,
  batchId: string,
  itemId: string,
): Promise<NewSession["workspace"]> {
  const [row] = await db
    .select({ manifest: batchItems.manifest, pack: batchItems.pack })
    .from(batchItems)
    .where(and(eq(batchItems.batchId, batchId), eq(batchItems.itemId, itemId)));
  return row?.manifest && row.pack ? { manifest: row.manifest, pack: row.pack } : undefined;
}

/** Marks the item as begun. Its session exists now, so the data that it was created from is not kept twice. */
export async function beginItem(db: Queryable, batchId: string, itemId: string): Promise<void> {
  await db
    .update(batchItems)
    .set({ status: "running", start: null, manifest: null, pack: null })
    .where(and(eq(batchItems.batchId, batchId), eq(batchItems.itemId, itemId)));
}

/** Fails an item whose session was not started. */
export async function refuseItem(
  db: Queryable,
  batchId: string,
  itemId: string,
  failure: FailureType,
): Promise<void> {
  await db
    .update(batchItems)
    .set({ status: "failed", failure, sessionId: null })
    .where(and(eq(batchItems.batchId, batchId), eq(batchItems.itemId, itemId)));
}

/** Stores the ends of these sessions' items, and returns them in the order of their ends. */
export async function settleItems(
  db: Queryable,
  batchId: string,
  open: readonly string[],
): Promise<EndedItem[]> {
  if (open.length === 0) return [];
  const rows = await db
    .select({
      id: sessions.id,
      status: sessions.status,
      failure: sql<string | null>`${sessions.error}->>'type'`,
    })
    .from(sessions)
    .where(and(inArray(sessions.id, [...open]), sql`${sessions.endedAt} is not null`))
    .orderBy(asc(sessions.endedAt));
  for (const { id, status, failure } of rows) {
    await db
      .update(batchItems)
      .set({ status, failure })
      .where(and(eq(batchItems.batchId, batchId), eq(batchItems.sessionId, id)));
  }
  return rows.map(({ id, status, failure }) => ({
    sessionId: id,
    status: status as EndedItem["status"],
    failure: failure ?? undefined,
  }));
}

/** The status of the item's session while that runs. */
const waits = sql`${batchItems.status} = 'running' and ${sessions.status} = 'waiting'`;
const isIn = (batchId: string) => and(eq(batchItems.batchId, batchId), gt(batchItems.ordinal, 0));

/** Costs are in USD, include the delegates of its sessions, and cover only attempts in force. */
export async function batchFigures(db: Queryable, batchId: string): Promise<BatchFigures> {
  const count = (condition: ReturnType<typeof sql>) =>
    sql<number>`(count(*) filter (where ${condition}))::int`;
  const [[counts], [spent]] = await Promise.all([
    db
      .select({
        total: sql<number>`count(*)::int`,
        completed: count(sql`${batchItems.status} = 'completed'`),
        failed: count(sql`${batchItems.status} in ('failed', 'cancelled', 'max_steps')`),
        waits: count(waits),
      })
      .from(batchItems)
      .leftJoin(sessions, eq(sessions.id, batchItems.sessionId))
      .where(isIn(batchId)),
    db
      .select({ costUsd: sql<number>`coalesce(sum(${modelCalls.costUsd}), 0)::float8` })
      .from(modelCalls)
      .innerJoin(sessions, eq(sessions.id, modelCalls.sessionId))
      .innerJoin(batchItems, sql`${batchItems.sessionId} in (${sessions.id}, ${sessions.parentId})`)
      .where(isIn(batchId)),
  ]);
  return {
    total: counts?.total ?? 0,
    completed: counts?.completed ?? 0,
    failed: counts?.failed ?? 0,
    waits: counts?.waits ?? 0,
    costUsd: spent?.costUsd ?? 0,
  };
}

export async function endBatch(db: Queryable, id: string, status: Batch["status"]): Promise<void> {
  await db
    .update(batches)
    .set({ status, endedAt: sql`now()` })
    .where(eq(batches.id, id));
}

export type ScheduleRow = typeof schedules.$inferSelect;

/** @returns false if a schedule with that name exists */
export async function createSchedule(
  db: Queryable,
  schedule: {
    readonly name: string;
    readonly task: string;
    readonly config: RunConfig;
    readonly owner: string | undefined;
  },
): Promise<boolean> {
  const rows = await db
    .insert(schedules)
    .values(schedule)
    .onConflictDoNothing()
    .returning({ name: schedules.name });
  return rows.length > 0;
}

export async function findSchedule(db: Queryable, name: string): Promise<ScheduleRow | undefined> {
  const [row] = await db.select().from(schedules).where(eq(schedules.name, name));
  return row;
}

export async function listSchedules(db: Queryable): Promise<ScheduleRow[]> {
  return db.select().from(schedules).orderBy(asc(schedules.name));
}

/** Removes a schedule. Its sessions are not affected: they have their own rows. */
export async function removeSchedule(db: Queryable, name: string): Promise<boolean> {
  const { rows } = await db.execute<{ removed: boolean }>(
    sql`select longhaul_remove_schedule(${name}) as removed`,
  );
  return rows[0]?.removed === true;
}
