/** Checks whether a worker is available for a request. */
import { hostname } from "node:os";
import { birthOf } from "../setup/processes.ts";
import { pollersOf, processOf } from "../setup/temporal-server.ts";
import type { Output } from "../console/output.ts";
import type { Services } from "./connection.ts";

/** Reports a missing worker at once, before a wait begins. */
export async function warnWithoutWorker(services: Services, output: Pick<Output, "note">): Promise<void> {
  if (await isServed(services)) return;
  output.note(
    `No worker serves the task queue ${services.taskQueue}, so the work waits until one runs. Start one: longhaul up --detach\n`,
  );
}

/** Also true if Temporal does not answer: then no missing worker is reported. */
async function isServed({ temporal, taskQueue }: Services): Promise<boolean> {
  try {
    const { connection } = await temporal.client();
    const pollers = await pollersOf(connection, temporal.namespace, taskQueue);
    const alive = await Promise.all(pollers.map(mayLive));
    return alive.includes(true);
  } catch {
    return true;
  }
}

/** Temporal also lists pollers that have ended recently; for processes of this machine, we can check. */
async function mayLive(identity: string): Promise<boolean> {
  const found = processOf(identity);
  return found?.host !== hostname() || (await birthOf(found.pid)) !== undefined;
}
