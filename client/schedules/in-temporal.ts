/** A schedule as Temporal has it: what it carries of ours, and whose it is. */
import { ScheduleNotFoundError, type Client, type ScheduleDescription } from "@temporalio/client";
import { WORKFLOW_TYPE } from "../../workflows/messages.ts";
import type { Services } from "../connect/connection.ts";

/** What happens to a start while the previous session runs. */
const OVERLAPS = ["skip", "buffer-one", "cancel", "allow"] as const;
export type Overlap = (typeof OVERLAPS)[number];

export const POLICIES = {
  skip: "SKIP",
  "buffer-one": "BUFFER_ONE",
  cancel: "CANCEL_OTHER",
  allow: "ALLOW_ALL",
} as const satisfies Record<Overlap, ScheduleDescription["policies"]["overlap"]>;

export const overlapOf = (found: ScheduleDescription | undefined): Overlap | undefined =>
  OVERLAPS.find((name) => POLICIES[name] === found?.policies.overlap);

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
