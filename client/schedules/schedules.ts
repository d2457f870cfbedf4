/** Schedules: Temporal handles the times and overlaps, our table holds the task and its settings. */
import {
  ScheduleAlreadyRunning,
  ScheduleNotFoundError,
  type Client,
  type ScheduleDescription,
} from "@temporalio/client";
import type { RunConfig } from "../../activities/config/agent-config.ts";
import { nearest } from "../../activities/contract/nearest.ts";
import {
  createSchedule,
  findSchedule,
  listSchedules,
  removeSchedule,
} from "../../activities/store/schedules.ts";
import { until } from "../../worker/connect/until.ts";
import { WORKFLOW_TYPE, type CodingAgentInput } from "../../workflows/messages.ts";
import type { Services } from "../connect/connection.ts";
import { notPossible, usageError, type ClientError } from "../console/errors.ts";
import { oneLine } from "../console/format.ts";
import { workflowOptions } from "../sessions/start-session.ts";
import { unlessTableMissing } from "../lookup/unless-table-missing.ts";

/** What happens to a start while the previous session runs. */
export const OVERLAPS = ["skip", "buffer-one", "cancel", "allow"] as const;
export type Overlap = (typeof OVERLAPS)[number];

const POLICIES = {
  skip: "SKIP",
  "buffer-one": "BUFFER_ONE",
  cancel: "CANCEL_OTHER",
  allow: "ALLOW_ALL",
} as const satisfies Record<Overlap, ScheduleDescription["policies"]["overlap"]>;

/** How late a start that was missed during downtime may be made up. Source: issue 15; Temporal's default is a year. */
const CATCH_UP = "1 hour";
/** How long to wait for a requested start. */
const STARTED_MS = 5_000;
const POLL_MS = 200;

export interface ScheduleOrder {
  readonly name: string;
  readonly cron: string;
  /** IANA name; undefined means UTC. */
  readonly timeZone: string | undefined;
  readonly overlap: Overlap;
  readonly task: string;
  readonly config: RunConfig;
}

export interface ScheduleDocument {
  readonly name: string;
  /** `missing`: Temporal no longer has the schedule. */
  readonly state: "active" | "paused" | "missing";
  readonly cron: string | null;
  readonly timeZone: string | null;
  readonly overlap: Overlap | null;
  /** ISO time. */
  readonly next: string | null;
  /** The session that was started last. */
  readonly last: string | null;
  readonly running: readonly string[];
  readonly task: string;
}

/** @throws ClientError: usage for an expression or time zone that Temporal refuses, impossible if the name is taken */
export async function makeSchedule(services: Services, order: ScheduleOrder): Promise<void> {
  const { db } = services.store;
  const { name, cron, timeZone, overlap, task, config } = order;
  const client = await services.temporal.client();
  if (!(await createSchedule(db, { name, task, config, owner: services.user }))) throw taken(name);
  const { staticSummary, memo, ...more } = workflowOptions(services.taskQueue, name, { task, config });
  try {
    await client.schedule.create({
      scheduleId: name,
      spec: { cronExpressions: [cron], ...(timeZone === undefined ? {} : { timezone: timeZone }) },
      action: {
        type: "startWorkflow",
        workflowType: WORKFLOW_TYPE,
        // Temporal appends the start time.
        workflowId: name,
        taskQueue: services.taskQueue,
        args: [{ schedule: name } satisfies CodingAgentInput],
        staticSummary,
        memo,
        // The SDK passes the priority on, but its types omit it.
        ...(more.priority === undefined ? {} : { priority: more.priority }),
      },
      policies: { overlap: POLICIES[overlap], catchupWindow: CATCH_UP },
      memo: { cron, timeZone: zoneOf(order) },
    });
  } catch (error) {
    await removeSchedule(db, name);
    if (error instanceof ScheduleAlreadyRunning) throw taken(name);
    throw refusal(error, order) ?? error;
  }
}

/** The zone of the times: an expression may name it too. */
export const zoneOf = ({ cron, timeZone }: Pick<ScheduleOrder, "cron" | "timeZone">): string =>
  /^(?:CRON_)?TZ=(\S+)/.exec(cron)?.[1] ?? timeZone ?? "UTC";

function taken(name: string): ClientError {
  return notPossible(
    `There is a schedule ${name} already.`,
    `Delete it first: longhaul schedule delete ${name}`,
  );
}

/** The SDK reports invalid times as a TypeError. */
function refusal(error: unknown, { cron, timeZone }: ScheduleOrder): ClientError | undefined {
  if (!(error instanceof TypeError)) return undefined;
  const zone = zoneOf({ cron, timeZone });
  if (/unknown time zone/i.test(error.message)) {
    const meant = nearest(zone, Intl.supportedValuesOf("timeZone"));
    return usageError(
      `Temporal does not know the time zone ${zone}.`,
      meant === undefined ? "Its name has the form Europe/Berlin." : `Did you mean ${meant}?`,
    );
  }
  return usageError(
    `Temporal does not accept the times ${JSON.stringify(cron)}: ${oneLine(error.message, 300)}`,
    'Five fields, such as --cron "0 6 * * 1-5": minute, hour, day, month, day of the week.',
  );
}

export async function readSchedules(services: Services): Promise<ScheduleDocument[]> {
  const rows = (await unlessTableMissing(() => listSchedules(services.store.db))) ?? [];
  if (rows.length === 0) return [];
  const client = await services.temporal.client();
  return Promise.all(
    rows.map(async ({ name, task }) => documentOf({ name, task }, await describe(client, name))),
  );
}

async function describe(client: Client, name: string): Promise<ScheduleDescription | undefined> {
  try {
    return await client.schedule.getHandle(name).describe();
  } catch (error) {
    if (error instanceof ScheduleNotFoundError) return undefined;
    throw error;
  }
}

function documentOf(
  row: Pick<ScheduleDocument, "name" | "task">,
  found: ScheduleDescription | undefined,
): ScheduleDocument {
  const { cron, timeZone } = (found?.memo ?? {}) as { readonly cron?: string; readonly timeZone?: string };
  return {
    ...row,
    state: stateOf(found),
    cron: cron ?? null,
    timeZone: timeZone ?? null,
    overlap: overlapOf(found) ?? null,
    next: found?.info.nextActionTimes[0]?.toISOString() ?? null,
    last: found?.info.recentActions.at(-1)?.action.workflow.workflowId ?? null,
    running: found?.info.runningActions.map(({ workflow }) => workflow.workflowId) ?? [],
  };
}

const overlapOf = (found: ScheduleDescription | undefined): Overlap | undefined =>
  OVERLAPS.find((name) => POLICIES[name] === found?.policies.overlap);

/** @throws ClientError (impossible) if there is none of that name */
export async function pauseSchedule(services: Services, name: string, pause: boolean): Promise<void> {
  const handle = (await services.temporal.client()).schedule.getHandle(name);
  await known(services, name, () => (pause ? handle.pause() : handle.unpause()));
}

/** Keeps the schedule's sessions; a running one continues. @throws ClientError (impossible) if there is no such schedule */
export async function deleteSchedule(services: Services, name: string): Promise<void> {
  const client = await services.temporal.client();
  const { db } = services.store;
  if ((await unlessTableMissing(() => findSchedule(db, name))) === undefined) throw unknown(name);
  try {
    await client.schedule.getHandle(name).delete();
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

const counted = ({ info }: ScheduleDescription) => info.numActionsTaken + info.numActionsSkippedOverlap;

async function known<T>(services: Services, name: string, use: () => Promise<T>): Promise<T> {
  if ((await unlessTableMissing(() => findSchedule(services.store.db, name))) === undefined)
    throw unknown(name);
  try {
    return await use();
  } catch (error) {
    if (!(error instanceof ScheduleNotFoundError)) throw error;
    throw notPossible(
      `Temporal has no schedule ${name} any more.`,
      `Delete it here too, and create it again: longhaul schedule delete ${name}`,
    );
  }
}

const unknown = (name: string) =>
  notPossible(`There is no schedule ${name}.`, "List them: longhaul schedule list");

function stateOf(found: ScheduleDescription | undefined): ScheduleDocument["state"] {
  if (found === undefined) return "missing";
  return found.state.paused ? "paused" : "active";
}
