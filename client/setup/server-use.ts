/** Who uses a Temporal server: what `down` reports before it ends one. */
import type { Connection } from "@temporalio/client";
import { type ListedRun, listRuns } from "../../temporal/list-runs.ts";
import { temporalClient } from "../../temporal/temporal-client.ts";
import { askTemporal } from "./ask-temporal.ts";
import { pollersOf } from "./task-queue.ts";
import { listNames, present } from "../console/format.ts";

/** Time to connect. Source: ours, on a busy machine. */
const CONNECT_MS = 10_000;
/** How many runs are checked, newest first, for queues of other installations. */
const LOOKED_AT = 500;

export interface ServerUse {
  /** Sessions of this installation whose runs are open. */
  readonly running: readonly string[];
  /** Other installations' task queues with open runs or a worker, including those whose pollers could not be read. */
  readonly others: readonly OtherUse[];
}

interface OtherUse {
  readonly queue: string;
  readonly running: number;
  readonly isUnsure?: boolean;
}

/** Undefined if the server does not answer. */
export function serverUse(server: {
  readonly temporalAddress: string;
  readonly taskQueue: string;
}): Promise<ServerUse | undefined> {
  return askTemporal(server.temporalAddress, CONNECT_MS, (connection, namespace) =>
    useOfServer(connection, namespace, server.taskQueue),
  ).catch(() => undefined);
}

async function useOfServer(connection: Connection, namespace: string, ownQueue: string): Promise<ServerUse> {
  const client = temporalClient({ connection, namespace });
  const runs: ListedRun[] = [];
  for await (const run of listRuns(client, "all")) if (runs.push(run) === LOOKED_AT) break;
  const open = (queue: string) => runs.filter((run) => run.taskQueue === queue && run.status === "RUNNING");
  const queues = [...new Set(runs.map((run) => run.taskQueue))].filter((name) => name !== ownQueue);
  // In parallel, so that requests without an answer take the time limit only once.
  const uses = await Promise.all(
    queues.map(async (queue): Promise<OtherUse[]> => {
      const running = open(queue).length;
      if (running > 0) return [{ queue, running }];
      const pollers = await pollersOf(connection, namespace, queue).catch(() => undefined);
      if (pollers === undefined) return [{ queue, running, isUnsure: true }];
      return pollers.length > 0 ? [{ queue, running }] : [];
    }),
  );
  return { running: open(ownQueue).map(({ workflowId }) => workflowId), others: uses.flat() };
}

/** The message for the person before the server is ended. */
export function describeUse(
  { running, others }: ServerUse,
  { shared, all }: { readonly shared: boolean; readonly all: boolean },
): string[] {
  const queues = others.map((other) => `${other.queue} (${useOf(other)})`).join(", ");
  const open = `Not finished: ${listNames(running)}. Nothing is lost; \`longhaul up --detach\` or any command continues it.`;
  const temporal = all
    ? `Temporal also ends for another installation, because of --all: ${queues}.`
    : `Temporal stays up: another installation uses it, ${queues}. End it anyway: longhaul down --all`;
  return present(running.length > 0 && open, shared && temporal);
}

function useOf({ running, isUnsure }: OtherUse): string {
  if (running > 0) return `open tasks: ${running}`;
  return isUnsure === true
    ? "no open task; Temporal does not say whether it has a worker"
    : "a worker, no open task";
}
