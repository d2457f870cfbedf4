/** The sessions that schedules start. Temporal keeps the times and the overlap policy. */
import { asc, eq, sql } from "drizzle-orm";
import type { RunConfig } from "../config/agent-config.ts";
import type { Queryable } from "./db.ts";
import { schedules } from "./schema/index.ts";

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
  const made = await db
    .insert(schedules)
    .values(schedule)
    .onConflictDoNothing()
    .returning({ name: schedules.name });
  return made.length > 0;
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
