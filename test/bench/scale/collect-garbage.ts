/** Has a worker collect its garbage, over its inspector: what it holds then is what it needs, whenever V8 last looked. */
import { once } from "node:events";
import type { WorkerProcess } from "../../support/worker-process.ts";

/** The environment of a worker whose inspector listens on a free port of this machine. */
export const INSPECTED = { NODE_OPTIONS: "--inspect=127.0.0.1:0" };

/** @throws Error if the worker was not started with `INSPECTED` */
export async function collectGarbage({ log }: Pick<WorkerProcess, "log">): Promise<void> {
  const address = /Debugger listening on (ws:\S+)/.exec(log())?.[1];
  if (address === undefined) throw new Error("The worker has no inspector.");
  const socket = new WebSocket(address);
  try {
    await once(socket, "open");
    const answered = once(socket, "message");
    socket.send(JSON.stringify({ id: 1, method: "HeapProfiler.collectGarbage" }));
    await answered;
  } finally {
    socket.close();
  }
}
