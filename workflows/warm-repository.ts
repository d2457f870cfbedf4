/** Makes the bases of a repository's default branch on all Docker hosts, each in its own time. Holds ids; the list is in Postgres. */
import { isCancellation, setCurrentDetails, TimeoutFailure } from "@temporalio/workflow";
import { ActivityFailure } from "@temporalio/common";
import {
  warmLine,
  type WarmedHost,
  type WarmHost,
  type WarmInput,
  type WarmPlan,
} from "../activities/contract/warm.ts";
import { warmActivities, warmHostActivity } from "./proxies.ts";

/** The workflow's id is `warm:`, the repository's id, and the schedule's time if one started it. */
export async function warmRepository(input: WarmInput): Promise<{ readonly hosts: readonly WarmedHost[] }> {
  const plan = await warmActivities.planWarm(input);
  const hosts = await Promise.all(plan.hosts.map((host) => warmOn(input, plan, host)));
  setCurrentDetails(warmLine(hosts));
  return { hosts };
}

async function warmOn(input: WarmInput, plan: WarmPlan, { host, taskQueue }: WarmHost): Promise<WarmedHost> {
  try {
    return await warmHostActivity(plan, taskQueue).warmHost(input);
  } catch (error) {
    if (isCancellation(error) || !isAway(error)) throw error;
    await warmActivities.noteAway({ ...input, host });
    return { host, outcome: "away" };
  }
}

const isAway = (error: unknown): boolean =>
  error instanceof ActivityFailure &&
  error.cause instanceof TimeoutFailure &&
  error.cause.timeoutType === "SCHEDULE_TO_START";
