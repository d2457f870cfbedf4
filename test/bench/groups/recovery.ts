/** A worker is killed in the middle of a model call while another stands by: until the step is asked again, and the next one. */
import { randomBytes } from "node:crypto";
import { connectDocker } from "../../../activities/sandbox/docker/connect-docker.ts";
import { endSession } from "../../support/start-run.ts";
import { busyWith, startWorkerProcess, type WorkerProcess } from "../../support/worker-process.ts";
import { now } from "../stand/channel.ts";
import type { Stand } from "../stand/stand.ts";
import { atMost, type Figure, middleAndSlowest } from "../table.ts";
import type { Scale } from "./group.ts";

export async function measureRecovery(stand: Stand, scale: Scale): Promise<Figure[]> {
  const queue = `bench-recovery-${randomBytes(3).toString("hex")}`;
  const start = () => startWorkerProcess({ ...stand.environment, LONGHAUL_TASK_QUEUE: queue });
  let workers: readonly WorkerProcess[] = await Promise.all([start(), start()]);
  const again: number[] = [];
  const next: number[] = [];
  try {
    for (let time = 0; time < scale.repeats; time += 1) {
      const taken = await killOnce(stand, queue, workers);
      again.push(taken.again);
      next.push(taken.next);
      workers = [...workers.filter((worker) => worker.alive), await start()];
    }
  } finally {
    await Promise.all(workers.map((worker) => worker.kill()));
  }
  const name = "kill -9 with a second worker:";
  return [
    middleAndSlowest(`${name} the interrupted step again`, again, atMost(3_000)),
    middleAndSlowest(`${name} the step after it`, next, atMost(5_000)),
  ];
}

async function killOnce(
  stand: Stand,
  queue: string,
  workers: readonly WorkerProcess[],
): Promise<{ again: number; next: number }> {
  // The first step's tool opens the sandbox in good time: what is timed is not Docker.
  const plan = { steps: 3, calls: 1, tool: "bash", hangsAt: 2 } as const;
  const session = await stand.start(plan, { queue });
  try {
    await stand.model.nth(session.id, 2);
    const busy = await busyWith(session, workers, "modelStep");
    const killed = now();
    await busy.kill();
    const again = (await stand.model.nth(session.id, 3)) - killed;
    const next = (await stand.model.nth(session.id, 4)) - killed;
    await session.handle.result();
    return { again, next };
  } finally {
    await endSession(stand.client, connectDocker(), session.id);
  }
}
