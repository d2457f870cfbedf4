/** Schedules: Temporal handles the times and overlaps, our table holds the task and its settings. */
import { shellWord } from "../console/format.ts";
import { ScheduleNotFoundError, type ScheduleDescription, type Client } from "@temporalio/client";
import { findSchedule, listSchedules, removeSchedule } from "../../activities/store/batches.ts";
import { until } from "../../temporal/patience.ts";
import type { Services } from "../connect/connection.ts";
import { notPossible } from "../console/errors.ts";
import { unlessTableMissing } from "../lookup/unless-table-missing.ts";
import { WORKFLOW_TYPE } from "../../workflows/messages.ts";
import { readLimits, type ScheduleLimits } from "./schedule-bound.ts";

/** How long to wait for a requested start. */
const STARTED_MS = 5_000;
const POLL_MS = 200;

export interface ScheduleDocument {
  readonly name: string;
  /** `missing`: Temporal no longer has the schedule. `unrecorded`: only Temporal has it, so its sessions fail. */
  readonly state: "active" | "paused" | "missing" | "unrecorded";
  readonly cron: string | null;
  readonly timeZone: string | null;
  readonly overlap: Overlap | null;
  /** ISO time. */
  readonly next: string | null;
  /** The session that was started last. */
  readonly last: string | null;
  readonly running: readonly string[];
  readonly task: string;
  /** Of each session. */
  readonly limits: ScheduleLimits;
}

/** What our rows say and what Temporal has of this installation, also where one of them lacks it. */
export async function readSchedules(services: Services): Promise<ScheduleDocument[]> {
  const rows = (await unlessTableMissing(() => listSchedules(services.store.db))) ?? [];
  const client = await services.temporal.client();
  const known = new Set(rows.map(({ name }) => name));
  const recorded = await Promise.all(
    rows.map(async ({ name, task, config }) =>
      documentOf({ name, task, limits: readLimits(config) }, await describeSchedule(client, name)),
    ),
  );
  const others: ScheduleDocument[] = [];
  for await (const { scheduleId: name, memo } of client.schedule.list()) {
    if (known.has(name) || !isOurs(services, memo as Partial<ScheduleMemo> | undefined)) continue;
    const schedule = await describeSchedule(client, name);
    if (schedule === undefined || !isOfAgent(schedule)) continue;
    others.push({
      ...documentOf({ name, task: "", limits: readLimits(undefined) }, schedule),
      state: "unrecorded",
    });
  }
  return [...recorded, ...others];
}

function documentOf(
  row: Pick<ScheduleDocument, "name" | "task" | "limits">,
  schedule: ScheduleDescription | undefined,
): ScheduleDocument {
  const { cron, timeZone } = (schedule?.memo ?? {}) as { readonly cron?: string; readonly timeZone?: string };
  return {
    ...row,
    state: stateOf(schedule),
    cron: cron ?? null,
    timeZone: timeZone ?? null,
    overlap: overlapOf(schedule) ?? null,
    next: schedule?.info.nextActionTimes[0]?.toISOString() ?? null,
    last: schedule?.info.recentActions.at(-1)?.action.workflow.workflowId ?? null,
    running: schedule?.info.runningActions.map(({ workflow }) => workflow.workflowId) ?? [],
  };
}

/** @throws ClientError (impossible) if there is none of that name */
export async function pauseSchedule(services: Services, name: string, pause: boolean): Promise<void> {
  const client = await services.temporal.client();
  const handle = client.schedule.getHandle(name);
  await known(services, name, async () => {
    // Its sessions would fail without our row: it can only be stopped.
    if (!pause) await requireRow(services, name);
    await (pause ? handle.pause() : handle.unpause());
  });
}

/** Keeps the schedule's sessions; a running one continues. @throws ClientError (impossible) if there is no such schedule */
export async function deleteSchedule(services: Services, name: string): Promise<void> {
  const client = await services.temporal.client();
  const { db } = services.store;
  const row = await unlessTableMissing(() => findSchedule(db, name));
  const schedule = await describeSchedule(client, name);
  if (row === undefined && !isUnrecorded(services, schedule)) throw unknown(name);
  try {
    if (schedule !== undefined) await client.schedule.getHandle(name).delete();
  } catch (error) {
    if (!(error instanceof ScheduleNotFoundError)) throw error;
  }
  await removeSchedule(db, name);
}

export type Triggered =
  | { readonly kind: "started"; readonly id: string }
  /** The previous session is still running. */
  | { readonly kind: "skipped" }
  /** The session begins later, or Temporal has not reported it yet. */
  | { readonly kind: "asked" };

/** Starts a session now, by the schedule's rules. @throws ClientError (impossible) if there is no such schedule */
export async function triggerSchedule(services: Services, name: string): Promise<Triggered> {
  const handle = (await services.temporal.client()).schedule.getHandle(name);
  return known(services, name, async () => {
    await requireRow(services, name);
    const before = await handle.describe();
    // By default, the SDK starts a session even if others are running.
    await handle.trigger(before.policies.overlap);
    let now = before;
    await until(
      async () => {
        now = await handle.describe();
        return counted(now) > counted(before);
      },
      STARTED_MS,
      POLL_MS,
    );
    if (now.info.numActionsSkippedOverlap > before.info.numActionsSkippedOverlap) return { kind: "skipped" };
    const id = now.info.recentActions.at(-1)?.action.workflow.workflowId;
    return now.info.numActionsTaken > before.info.numActionsTaken && id !== undefined
      ? { kind: "started", id }
      : { kind: "asked" };
  });
}

/** A schedule of ours that only Temporal has. */
const isUnrecorded = (services: Services, schedule: ScheduleDescription | undefined): boolean =>
  schedule !== undefined &&
  isOfAgent(schedule) &&
  isOurs(services, schedule.memo as Partial<ScheduleMemo> | undefined);

const counted = ({ info }: ScheduleDescription) => info.numActionsTaken + info.numActionsSkippedOverlap;

async function known<T>(services: Services, name: string, use: () => Promise<T>): Promise<T> {
  if (!(await hasRow(services, name))) {
    const client = await services.temporal.client();
    if (!isUnrecorded(services, await describeSchedule(client, name))) throw unknown(name);
  }
  try {
    return await use();
  } catch (error) {
    if (!(error instanceof ScheduleNotFoundError)) throw error;
    throw notPossible(
      `Temporal has no schedule ${name} any more.`,
      `Delete it here too, and create it again: longhaul schedule delete ${shellWord(name)}`,
    );
  }
}

const hasRow = async ({ store }: Services, name: string) =>
  (await unlessTableMissing(() => findSchedule(store.db, name))) !== undefined;

/** @throws ClientError (impossible) for a schedule whose sessions would not find their task */
async function requireRow(services: Services, name: string): Promise<void> {
  if (await hasRow(services, name)) return;
  throw notPossible(
    `Only Temporal has the schedule ${name}: its task is not recorded, so its sessions would fail.`,
    `Create it again with the same times, which adopts it: longhaul schedule create ${shellWord(name)} … Or delete it: longhaul schedule delete ${shellWord(name)}`,
  );
}

const unknown = (name: string) =>
  notPossible(`There is no schedule ${name}.`, "List them: longhaul schedule list");

function stateOf(schedule: ScheduleDescription | undefined): ScheduleDocument["state"] {
  if (schedule === undefined) return "missing";
  return schedule.state.paused ? "paused" : "active";
}

/** What happens to a start while the previous session runs. */
const OVERLAPS = ["skip", "buffer-one", "cancel", "allow"] as const;
/** A schedule as Temporal has it: what it carries of ours, and whose it is. */
export type Overlap = (typeof OVERLAPS)[number];

export const POLICIES = {
  skip: "SKIP",
  "buffer-one": "BUFFER_ONE",
  cancel: "CANCEL_OTHER",
  allow: "ALLOW_ALL",
} as const satisfies Record<Overlap, ScheduleDescription["policies"]["overlap"]>;

export const overlapOf = (schedule: ScheduleDescription | undefined): Overlap | undefined =>
  OVERLAPS.find((name) => POLICIES[name] === schedule?.policies.overlap);

/** What a schedule of ours carries in Temporal. */
export interface ScheduleMemo extends Readonly<Record<string, unknown>> {
  readonly cron: string;
  readonly timeZone: string;
  /** Of the installation that made it. */
  readonly queue: string;
  readonly owner?: string;
  /** Of one attempt to create it. */
  readonly creation: string;
}

/** Whether it starts sessions. */
export const isOfAgent = ({ action }: Pick<ScheduleDescription, "action">): boolean =>
  action.type === "startWorkflow" && action.workflowType === WORKFLOW_TYPE;

/** Of this installation, and of this user where its rows are. */
export const isOurs = ({ taskQueue, user }: Services, memo: Partial<ScheduleMemo> | undefined): boolean =>
  memo?.queue === taskQueue && (user === undefined || memo.owner === undefined || memo.owner === user);

/** @returns undefined if Temporal has none of that name */
export async function describeSchedule(
  client: Client,
  name: string,
): Promise<ScheduleDescription | undefined> {
  try {
    return await client.schedule.getHandle(name).describe();
  } catch (error) {
    if (error instanceof ScheduleNotFoundError) return undefined;
    throw error;
  }
}
