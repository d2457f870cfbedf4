/** What a Temporal server says of this installation: whose workers poll its task queue, and its deployment's versions. */
import { createHash } from "node:crypto";
import { hostname } from "node:os";
import type { Connection } from "@temporalio/client";
import { birthOf } from "./processes.ts";
import type { Say } from "./progress.ts";
import { readState, rememberFound } from "./state.ts";
import { reasonOf } from "../../activities/contract/errors.ts";
import type { Finding } from "./sandbox-check.ts";
import { present } from "../console/format.ts";
import { temporalConnection } from "../../temporal/connection.ts";
import { withTimeout } from "../../temporal/patience.ts";

/** @throws Error if no server answers within `connectMs`; also throws whatever `ask` throws */
export async function askTemporal<T>(
  address: string,
  connectMs: number,
  ask: (connection: Connection, namespace: string) => Promise<T>,
): Promise<T> {
  const { connection: options, namespace } = temporalConnection(address);
  // Loaded on demand: most starts do not need it.
  const { Connection } = await import("@temporalio/client");
  const connecting = Connection.connect({ ...options, connectTimeout: connectMs });
  const connection = await withTimeout(connecting, connectMs);
  try {
    return await ask(connection, namespace);
  } finally {
    await connection.close().catch(() => {});
  }
}

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
  return identities.filter((identity) => ownPid === undefined || parseIdentity(identity)?.pid !== ownPid);
}

/** The process that a worker's identity names: `12.4711@host:build`, as worker/worker-options.ts makes it. */
export function parseIdentity(identity: string): { readonly pid: number; readonly host: string } | undefined {
  const [, pid, host] = /^(\d+)(?:\.\d+)?@([^:]+)/.exec(identity) ?? [];
  return pid === undefined || host === undefined ? undefined : { pid: Number(pid), host };
}

/** Identities of the workers that have polled a queue in the last minutes. */
export async function pollersOf(
  connection: Pick<Connection, "workflowService" | "withDeadline">,
  namespace: string,
  queue: string,
): Promise<readonly string[]> {
  const { pollers } = await connection.withDeadline(Date.now() + ASK_MS, () =>
    connection.workflowService.describeTaskQueue({
      namespace,
      taskQueue: { name: queue },
      taskQueueType: WORKFLOW,
    }),
  );
  return (pollers ?? []).map((poller) => poller.identity ?? "").filter((identity) => identity !== "");
}

/** Those of a queue that may still live: Temporal also lists pollers that have ended recently, and we can check processes of this machine. */
export async function workersOf(
  connection: Pick<Connection, "workflowService" | "withDeadline">,
  namespace: string,
  queue: string,
): Promise<readonly string[]> {
  const identities = await pollersOf(connection, namespace, queue);
  const alive = await Promise.all(identities.map(mayLive));
  return identities.filter((_, index) => alive[index]);
}

async function mayLive(identity: string): Promise<boolean> {
  const parsed = parseIdentity(identity);
  return parsed?.host !== hostname() || (await birthOf(parsed.pid)) !== undefined;
}

const VERSIONS_MS = 3_000;
/** temporal.api.enums.v1.VersionDrainageStatus */
const DRAINING = 1;
const SHOWN_VERSIONS = 10;
const GRPC_NOT_FOUND = 5;

/** @param deployment LONGHAUL_DEPLOYMENT. @returns a warning if a version has open runs and is no longer current */
export async function versionsFinding(address: string, deployment: string): Promise<Finding> {
  try {
    const { workerDeploymentInfo: info } = await askTemporal(address, VERSIONS_MS, (connection, namespace) =>
      connection.withDeadline(Date.now() + VERSIONS_MS, () =>
        connection.workflowService.describeWorkerDeployment({ namespace, deploymentName: deployment }),
      ),
    );
    const { currentDeploymentVersion, rampingDeploymentVersion, rampingVersionPercentage } =
      info?.routingConfig ?? {};
    const draining = (info?.versionSummaries ?? [])
      .filter(({ drainageStatus, drainageInfo }) => (drainageStatus || drainageInfo?.status) === DRAINING)
      .map(({ deploymentVersion }) => deploymentVersion?.buildId ?? "?");
    const ramping = rampingDeploymentVersion?.buildId;
    const report = present(
      `${deployment}: current ${currentDeploymentVersion?.buildId ?? "none (new runs go to workers without a version)"}`,
      Boolean(ramping) && `ramping ${ramping} (${rampingVersionPercentage ?? 0} %)`,
      draining.length > 0 && `draining ${draining.slice(0, SHOWN_VERSIONS).join(", ")}`,
    ).join(", ");
    if (draining.length === 0) return { ok: true, found: report };
    return { ok: true, warning: true, found: report, fix: movingCommand(deployment, draining[0] ?? "") };
  } catch (error) {
    const isUnknown = (error as { readonly code?: unknown }).code === GRPC_NOT_FOUND;
    const why = isUnknown
      ? "no worker of it has connected yet"
      : `Temporal did not report it (${reasonOf(error)})`;
    return { ok: true, warning: true, found: `${deployment}: ${why}` };
  }
}

/** Moves all runs of a version without workers to the current one. */
function movingCommand(deployment: string, build: string): string {
  return `Keep workers of ${build} until its runs have moved. If they are gone, move its runs: temporal workflow update-options --query 'TemporalWorkerDeploymentVersion="${deployment}:${build}" AND ExecutionStatus="Running"' --versioning-override-behavior auto_upgrade`;
}
