/** Creates a schedule: our row, then Temporal's schedule, and what became of an attempt whose answer was lost. */
import { randomUUID } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import type { Client, ScheduleDescription } from "@temporalio/client";
import type { RunConfig } from "../../activities/config/agent-config.ts";
import { nearest } from "../../activities/text/lists.ts";
import { createSchedule, findSchedule, removeSchedule } from "../../activities/store/batches.ts";
import { plainReason } from "../../temporal/service-missing.ts";
import { WORKFLOW_TYPE } from "../../workflows/messages.ts";
import type { CodingAgentInput } from "../../workflows/run-input.ts";
import type { Services } from "../connect/connection.ts";
import { missing, notPossible, usageError, type ClientError } from "../console/errors.ts";
import { harmlessLine, shellWord } from "../console/format.ts";
import { readStarter, workflowOptions } from "../sessions/start-session.ts";
import {
  describeSchedule,
  isOfAgent,
  overlapOf,
  POLICIES,
  type Overlap,
  type ScheduleMemo,
} from "./schedules.ts";

/**
 * How late a start that was missed during downtime may be made up; Temporal's default is a year. Chosen by judgement: it bounds how
 * many starts are made up at once.
 */
const CATCH_UP = "1 hour";
export interface ScheduleOrder {
  readonly name: string;
  readonly cron: string;
  /** IANA name; undefined means UTC. */
  readonly timeZone: string | undefined;
  readonly overlap: Overlap;
  readonly task: string;
  readonly config: RunConfig;
}

/** The zone of the times: an expression may name it too. */
export const parseZone = ({ cron, timeZone }: Pick<ScheduleOrder, "cron" | "timeZone">): string =>
  /^(?:CRON_)?TZ=(\S+)/.exec(cron)?.[1] ?? timeZone ?? "UTC";

/**
 * Idempotent after an attempt whose answer was lost: Temporal is asked what became of it, and what it has of ours is adopted.
 * @returns the next times, at most three
 * @throws ClientError: usage for an expression or time zone that Temporal refuses or that never comes, impossible if the name is taken
 */
export async function makeSchedule(
  services: Services,
  scheduleOrder: ScheduleOrder,
): Promise<readonly Date[]> {
  const { db } = services.store;
  const { name, task, config } = scheduleOrder;
  checkTimes(scheduleOrder.cron);
  const client = await services.temporal.client();
  const row = { name, task, config, owner: services.user };
  const memo = memoOf(services, scheduleOrder);
  if (!(await createSchedule(db, row))) {
    // A row without a schedule is left by an attempt that died in between, or by a Temporal that was lost.
    const [mine, existing] = await Promise.all([findSchedule(db, name), describeSchedule(client, name)]);
    // The same order before, whose answers were lost.
    if (mine && existing && isSameOrder(mine, scheduleOrder) && isAdoptable(existing, scheduleOrder, memo))
      return nextOf(existing);
    if (mine === undefined || existing !== undefined) throw nameInUse(name);
    await removeSchedule(db, name);
    if (!(await createSchedule(db, row))) throw nameInUse(name);
  }
  const existing = await createInTemporal(services, scheduleOrder, memo).then(
    () => describeSchedule(client, name),
    (error: unknown) => settle(services, client, { order: scheduleOrder, memo, error }),
  );
  const next = existing === undefined ? [] : nextOf(existing);
  if (existing !== undefined && next.length === 0) {
    await client.schedule.getHandle(name).delete();
    await removeSchedule(db, name);
    throw usageError(`The times ${JSON.stringify(scheduleOrder.cron)} never come.`, FORM);
  }
  return next;
}

const nextOf = ({ info }: ScheduleDescription) => info.nextActionTimes.slice(0, 3);

/** Whether the stored task and settings are those of the order. */
const isSameOrder = (
  { task, config }: { readonly task: string; readonly config: unknown },
  scheduleOrder: ScheduleOrder,
) =>
  task === scheduleOrder.task && isDeepStrictEqual(config, JSON.parse(JSON.stringify(scheduleOrder.config)));

const memoOf = ({ taskQueue, user }: Services, scheduleOrder: ScheduleOrder): ScheduleMemo => ({
  cron: scheduleOrder.cron,
  timeZone: parseZone(scheduleOrder),
  queue: taskQueue,
  owner: user,
  creation: randomUUID(),
});

async function createInTemporal(
  services: Services,
  { name, cron, timeZone, overlap, task, config }: ScheduleOrder,
  scheduleMemo: ScheduleMemo,
): Promise<void> {
  const client = await services.temporal.client();
  const { staticSummary, memo, ...more } = workflowOptions(await readStarter(services), name, {
    task,
    config,
  });
  await client.schedule.create({
    scheduleId: name,
    spec: { cronExpressions: [cron], timezone: timeZone },
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
    memo: scheduleMemo,
  });
}

interface Failed {
  readonly order: ScheduleOrder;
  readonly memo: ScheduleMemo;
  readonly error: unknown;
}

/**
 * Only Temporal's own no is one: after any other failure the schedule may exist.
 * @returns the schedule, if it is this attempt's, or one of ours that lacked its row
 */
async function settle(
  services: Services,
  client: Client,
  { order: scheduleOrder, memo, error }: Failed,
): Promise<ScheduleDescription> {
  const { name } = scheduleOrder;
  const { db } = services.store;
  const refused = refusal(error, scheduleOrder);
  if (refused !== undefined) {
    await removeSchedule(db, name);
    throw refused;
  }
  let existing: ScheduleDescription | undefined;
  try {
    existing = await describeSchedule(client, name);
  } catch (unanswered) {
    throw missing(
      `Temporal did not say whether it made the schedule ${name} (${plainReason(unanswered)}).`,
      `Create it again with the same settings, which adopts it; or look whether it is there: longhaul schedule list. To remove it: longhaul schedule delete ${shellWord(name)}`,
      error,
    );
  }
  if (existing !== undefined && isAdoptable(existing, scheduleOrder, memo)) return existing;
  await removeSchedule(db, name);
  if (existing !== undefined) throw nameInUse(name);
  throw error;
}

function isAdoptable(existing: ScheduleDescription, { overlap }: ScheduleOrder, memo: ScheduleMemo): boolean {
  const theirs = existing.memo as Partial<ScheduleMemo> | undefined;
  if (theirs?.creation === memo.creation) return true;
  const isSame = (["cron", "timeZone", "queue", "owner"] as const).every(
    (key) => theirs?.[key] === memo[key],
  );
  return isSame && isOfAgent(existing) && overlapOf(existing) === overlap;
}

const FORM =
  'Five fields, such as --cron "0 6 * * 1-5": minute, hour, day, month, day of the week; or @daily, @every 6h; before them CRON_TZ=ZONE.';

/** Temporal also reads six and seven fields, with a year at the end; other programs' six begin with seconds. @throws ClientError (usage) */
function checkTimes(cron: string): void {
  const times = cron.trim().replace(/^(?:CRON_)?TZ=\S+\s+/, "");
  if (times.startsWith("@") || times.split(/\s+/).length === 5) return;
  throw usageError(`${JSON.stringify(cron)} has ${times.split(/\s+/).length} fields.`, FORM);
}

function nameInUse(name: string): ClientError {
  return notPossible(
    `There is a schedule ${name} already.`,
    `Delete it first: longhaul schedule delete ${shellWord(name)}`,
  );
}

/** The SDK reports invalid times as a TypeError. */
function refusal(error: unknown, { cron, timeZone }: ScheduleOrder): ClientError | undefined {
  if (!(error instanceof TypeError)) return undefined;
  const zone = parseZone({ cron, timeZone });
  if (/unknown time zone/i.test(error.message)) {
    const suggestion = nearest(zone, Intl.supportedValuesOf("timeZone"));
    return usageError(
      `Temporal does not know the time zone ${zone}.`,
      suggestion === undefined ? "Its name has the form Europe/Berlin." : `Did you mean ${suggestion}?`,
    );
  }
  return usageError(
    `Temporal does not accept the times ${JSON.stringify(cron)}: ${harmlessLine(error.message, 300)}`,
    FORM,
  );
}
