/** Whole runs of the agent and of the yardstick, and when each of their steps began. */
import { randomBytes } from "node:crypto";
import { ServiceError } from "@temporalio/client";
import type { Plan } from "./plan.ts";
import { YARDSTICK_QUEUE, type Stand, type StartOptions } from "./stand.ts";

export interface Ran {
  readonly id: string;
  /** When each step's model call (or first activity) began, in ms. */
  readonly starts: readonly number[];
}

const MAX_ASKED = 20;

/** Waits for a run's end. A server that has fifty at work on a busy machine may drop the question: it is asked again. */
async function ended(handle: { result(): Promise<unknown> }): Promise<void> {
  for (let asked = 1; ; asked += 1) {
    try {
      await handle.result();
      return;
    } catch (error) {
      if (!(error instanceof ServiceError) || asked >= MAX_ASKED) throw error;
    }
  }
}

/** Plays a session to its end. */
export async function runAgent(stand: Stand, plan: Plan, options?: StartOptions): Promise<Ran> {
  const { id, handle } = await stand.start(plan, options);
  await ended(handle);
  return { id, starts: await stand.model.arrivals(id) };
}

/** Plays the yardstick's loop to its end. */
export async function runYardstick(stand: Stand, steps: number): Promise<Ran> {
  const id = `yardstick-${randomBytes(5).toString("hex")}`;
  const handle = await stand.client.workflow.start("twoActivities", {
    workflowId: id,
    taskQueue: YARDSTICK_QUEUE,
    args: [steps],
  });
  await ended(handle);
  return { id, starts: await stand.yardstick.thinkStarts(id) };
}

/** Of the newest run. */
export async function historyBytes(stand: Stand, id: string): Promise<number> {
  const { raw } = await stand.client.workflow.getHandle(id).describe();
  return Number(raw.workflowExecutionInfo?.historySizeBytes ?? 0);
}
