/** The yardstick: the least a durable loop of two activities a step can be on this server. */
import {
  ActivityCancellationType,
  condition,
  defineSignal,
  proxyActivities,
  setHandler,
} from "@temporalio/workflow";
import type { YardstickActivities } from "./activities.ts";

const { think, perform } = proxyActivities<YardstickActivities>({
  cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
  heartbeatTimeout: 30_000,
  startToCloseTimeout: 600_000,
  retry: { maximumAttempts: 20 },
});

/** Two no-op activities a step. */
export async function twoActivities(steps: number): Promise<void> {
  for (let step = 1; step <= steps; step += 1) {
    await think(step);
    await perform(step);
  }
}

export const goSignal = defineSignal("go");

/** Waits for a signal, then runs an activity; as many times as its input says. */
export async function signalToActivity(times: number): Promise<void> {
  let signals = 0;
  setHandler(goSignal, () => void (signals += 1));
  for (let time = 1; time <= times; time += 1) {
    await condition(() => signals >= time);
    await think(time);
  }
}
