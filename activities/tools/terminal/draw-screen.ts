/** Draws a terminal's screen off the worker's main thread, within bounds of time and memory. */
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { DRAWS, type Drawing, type Drawn } from "./screen.ts";

/** Chosen: some fifty times what a mebibyte of ordinary output takes. */
const DRAW_MS = 5_000;
/** Chosen: some four times what the longest output takes. */
const HEAP_MB = 128;

/** @returns undefined if it took too long or too much memory, as an output may that is meant to */
export async function drawApart(drawing: Drawing): Promise<Drawn | undefined> {
  const worker = new Worker(new URL("./screen.ts", import.meta.url), {
    workerData: DRAWS,
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MB },
    execArgv: [],
    env: {},
  });
  try {
    worker.postMessage(drawing);
    const answer: unknown[] = await once(worker, "message", { signal: AbortSignal.timeout(DRAW_MS) });
    // Cast safely: our own thread sends nothing else.
    return answer[0] as Drawn;
  } catch {
    return undefined;
  } finally {
    await worker.terminate();
  }
}
