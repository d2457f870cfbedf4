/** A worker's process from its start to the first model call, with the services up and the bundle built. */
import { ensureWorkflowBundle } from "../../../worker/bundle.ts";
import { startWorkerProcess } from "../../support/worker-process.ts";
import { now } from "../stand/channel.ts";
import type { Stand } from "../stand/stand.ts";
import { atMost, type Figure, middleOf } from "../table.ts";
import type { Scale } from "./group.ts";

export async function measureStart(stand: Stand, scale: Scale): Promise<Figure[]> {
  await ensureWorkflowBundle();
  const times: number[] = [];
  for (let time = 0; time < scale.repeats; time += 1)
    times.push(await startOnce(stand, `bench-start-${time}`));
  const note = `fastest ${Math.min(...times).toFixed(0)} ms`;
  return [middleOf("process start to the first model call", times, { goal: atMost(1_200), note })];
}

async function startOnce(stand: Stand, queue: string): Promise<number> {
  const { id, handle } = await stand.start({ steps: 0, calls: 1, tool: "probe" }, { queue });
  const began = now();
  const starting = startWorkerProcess({ ...stand.environment, LONGHAUL_TASK_QUEUE: queue });
  const asked = await stand.model.nth(id, 1);
  await handle.result();
  await (await starting).terminate();
  return asked - began;
}
