/** A server that was down: missed starts of a schedule are caught up within its window, one at a time (B6). */
import { expect, it, onTestFinished } from "vitest";
import { makeSchedule } from "../../client/schedules/make-schedule.ts";
import { runConfig, useAgent } from "../support/agent-harness.ts";
import { clientServices } from "../support/client-services.ts";
import { connectTo } from "../support/connections.ts";
import { eventually } from "../support/eventually.ts";
import { answered, fakeActivities } from "../support/fake-activities.ts";
import { startOwnTemporal } from "../support/own-temporal.ts";
import { createTestWorker } from "../support/test-worker.ts";

const agent = useAgent();

/** Temporal's shortest window. */
const WINDOW_MS = 10_000;
const EVERY_MS = 2_000;
/** The server's own delay in processing due starts. */
const LATE_MS = 10_000;

it("catches up on an hour at most; a run in progress delays the next start", { tags: ["B6"] }, async () => {
  const temporal = await startOwnTemporal();
  onTestFinished(() => temporal.close());
  const connect = async () => {
    const connections = await connectTo(temporal.address);
    onTestFinished(() => connections.close());
    return connections;
  };
  const name = "nightly";
  const { client, native } = await connect();
  const taskQueue = "schedule-away";
  const services = {
    ...clientServices(agent),
    taskQueue,
    temporal: { client: () => Promise.resolve(client), address: temporal.address, namespace: "default" },
  };
  const order = { name, cron: "0 6 1 1 *", timeZone: undefined, task: "Do it.", config: runConfig() };
  await makeSchedule(services, { ...order, overlap: "skip" });
  const handle = client.schedule.getHandle(name);
  // The server's settings: 3 h of downtime bring the starts of the last hour at most, one at a time.
  expect((await handle.describe()).policies).toMatchObject({ catchupWindow: 3_600_000, overlap: "SKIP" });

  // The same with shorter times, on a server that is stopped for longer than its window.
  await handle.update(({ spec: _spec, ...schedule }) => ({
    ...schedule,
    spec: { intervals: [{ every: EVERY_MS }] },
    policies: { ...schedule.policies, catchupWindow: WINDOW_MS },
  }));
  const { activities } = fakeActivities({ steps: [answered()] });
  const worker = await createTestWorker({ taskQueue, connection: native, activities });
  await worker.runUntil(async () => {
    const taken = async () => (await handle.describe()).info.numActionsTaken;
    await eventually("it has started some", async () => (await taken()) >= 2, 60_000);
    await temporal.stop();
    const stoppedAt = Date.now();
    await eventually("longer than its window is over", () => Date.now() - stoppedAt > 3 * WINDOW_MS, 60_000);
    const startedAt = Date.now();
    await temporal.start();
    const later = (await connect()).client.schedule.getHandle(name);
    await eventually(
      "it starts again",
      async () => {
        const { recentActions } = (await later.describe()).info;
        return (recentActions.at(-1)?.takenAt.getTime() ?? 0) > startedAt + LATE_MS;
      },
      90_000,
    );
    await later.pause();
    const { info } = await later.describe();
    // At least the first part of the thirty seconds of downtime.
    expect(info.numActionsMissedCatchupWindow).toBeGreaterThanOrEqual(WINDOW_MS / EVERY_MS);
    for (const { scheduledAt, takenAt } of info.recentActions)
      expect(takenAt.getTime() - scheduledAt.getTime()).toBeLessThanOrEqual(WINDOW_MS + LATE_MS);
    expect(info.runningActions.length).toBeLessThanOrEqual(1);
  });
});
