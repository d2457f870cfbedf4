/** A worker's process from its start to the first model call, with the services up and the bundle built. */
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { ensureWorkflowBundle } from "../../../worker/bundle.ts";
import { now } from "../stand/channel.ts";
import type { Stand } from "../stand/stand.ts";
import { median } from "../stats.ts";
import type { Figure } from "../table.ts";
import type { Scale } from "./group.ts";

const MAIN = fileURLToPath(new URL("../../../worker/main.ts", import.meta.url));
const QUICK_START = new URL("../../../scripts/quick-start.mjs", import.meta.url).href;

export async function measureStart(stand: Stand, scale: Scale): Promise<Figure[]> {
  await ensureWorkflowBundle();
  const times: number[] = [];
  for (let time = 0; time < scale.repeats; time += 1)
    times.push(await startOnce(stand, `bench-start-${time}`));
  return [
    {
      name: "process start to the first model call",
      value: median(times),
      unit: "ms",
      n: times.length,
      goal: { of: "value", atMost: 1_000 },
      note: `fastest ${Math.min(...times).toFixed(0)} ms`,
    },
  ];
}

async function startOnce(stand: Stand, queue: string): Promise<number> {
  const { id, handle } = await stand.start({ steps: 0, calls: 1, tool: "probe" }, { queue });
  const began = now();
  const worker = spawn(process.execPath, ["--import", QUICK_START, MAIN], {
    env: { ...process.env, ...stand.environment, LONGHAUL_TASK_QUEUE: queue },
    stdio: ["ignore", "ignore", "inherit"],
  });
  const ended = new Promise((resolve) => worker.once("exit", resolve));
  const asked = await stand.model.nth(id, 1);
  await handle.result();
  worker.kill("SIGTERM");
  await ended;
  return asked - began;
}
