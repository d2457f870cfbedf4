/** The task queue of this installation: `longhaul`, unless another installation's worker serves it on the same server. */
import { createHash } from "node:crypto";
import type { Connection } from "@temporalio/client";
import { askTemporal } from "./ask-temporal.ts";
import type { Say } from "./progress.ts";
import { readState, rememberFound } from "./state.ts";

export const DEFAULT_QUEUE = "longhaul";
const ASK_MS = 2_000;
/** temporal.api.enums.v1.TaskQueueType */
const WORKFLOW = 1;

/**
 * Two clones on one Temporal server each have their own database. On one queue, each would get tasks for sessions in the
 * other's database, so the later clone gets its own queue, permanently.
 */
export async function chooseQueue(options: {
  readonly home: string;
  readonly temporalAddress: string;
  readonly say: Say;
}): Promise<void> {
  const { home, temporalAddress, say } = options;
  if (readState(home).found.queue !== undefined) return;
  const others = await pollers(temporalAddress, readState(home).services.worker?.pid);
  if (others.length === 0) return;
  const queue = `${DEFAULT_QUEUE}-${createHash("sha256").update(home).digest("hex").slice(0, 8)}`;
  rememberFound(home, "queue", queue);
  say(
    `Another worker serves the queue ${DEFAULT_QUEUE} at ${temporalAddress}; this installation uses ${queue}.`,
  );
}

/** Identities of the workers that poll the default queue, except our own. Empty if Temporal does not answer. */
async function pollers(address: string, ownPid: number | undefined): Promise<string[]> {
  const identities = await askTemporal(address, ASK_MS, (connection, namespace) =>
    pollersOf(connection, namespace, DEFAULT_QUEUE),
  ).catch(() => []);
  return identities.filter((identity) => ownPid === undefined || processOf(identity)?.pid !== ownPid);
}

/** The process that a worker's identity names: `12.4711@host:build`, as worker/worker-options.ts makes it. */
export function processOf(identity: string): { readonly pid: number; readonly host: string } | undefined {
  const [, pid, host] = /^(\d+)(?:\.\d+)?@([^:]+)/.exec(identity) ?? [];
  return pid === undefined || host === undefined ? undefined : { pid: Number(pid), host };
}

/** Identities of the workers that have polled a queue in the last minutes. */
export async function pollersOf(
  connection: Pick<Connection, "workflowService" | "withDeadline">,
  namespace: string,
  queue: string,
): Promise<readonly string[]> {
  const { pollers: found } = await connection.withDeadline(Date.now() + ASK_MS, () =>
    connection.workflowService.describeTaskQueue({
      namespace,
      taskQueue: { name: queue },
      taskQueueType: WORKFLOW,
    }),
  );
  return (found ?? []).map((poller) => poller.identity ?? "").filter((identity) => identity !== "");
}
