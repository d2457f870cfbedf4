/** Which queues this process serves, and how. */
import { randomInt } from "node:crypto";
import { hostname } from "node:os";
import type {
  ActivityInterceptorsFactory,
  InjectedSinks,
  NativeConnection,
  WorkerOptions,
} from "@temporalio/worker";
import type { Sinks } from "@temporalio/workflow";
import type { AgentActivities } from "../activities/contract/activities.ts";
import { FIRST_LOOK_MS } from "../activities/runtime/activity-scope.ts";
import type { BatchActivities } from "../activities/contract/batch.ts";
import type { WorkflowBundle } from "./bundle.ts";
import type { WorkerConfig } from "./config.ts";
import { createDataConverter } from "../temporal/codec.ts";

export interface WorkerParts {
  readonly config: WorkerConfig;
  readonly connection: NativeConnection;
  readonly namespace: string;
  readonly bundle: WorkflowBundle;
  /** Informs all workers that a session's activities must stop; default: only their heartbeats do. */
  readonly announceStop?: (sessionId: string) => void;
  readonly activities: AgentActivities & Partial<BatchActivities>;
  /** The process's identity in Temporal; default: without the part that distinguishes two processes of one address. */
  readonly identity?: string;
}

/**
 * Open polls of each kind. A task handed to a poll of a stopped or cut-off worker waits for a timeout: ten polls, the SDK's
 * own number, can delay one task ten times. So there are few polls under low load, and more when the server asks for them.
 */
const POLLERS = { type: "autoscaling", minimum: 1, initial: 2, maximum: 20 } as const;

/** Workflow tasks are short: more at once would only compete for the processor. */
const WORKFLOW_SLOTS = 40;
/** Workflows kept in memory between two tasks; others are replayed. */
const CACHED_WORKFLOWS = 500;

/** Adds the session to every activity's log lines. The size limit is not here: the payload converter covers more (payload-guard.ts). */
const activityInterceptors: ActivityInterceptorsFactory = (context) => ({
  outbound: {
    getLogAttributes: (input, next) =>
      next({
        ...input,
        sessionId: context.info.workflowExecution?.workflowId,
        activity: context.info.activityType,
        attempt: context.info.attempt,
      }),
  },
});

/** Unique to this process, even if a container restarts with the same name and process id. Short, like `buildId`. */
export function workerIdentity({ buildId }: Pick<WorkerConfig, "buildId">): string {
  return `${process.pid}.${randomInt(10_000)}@${hostname()}:${buildId}`;
}

function bundleOption(bundle: WorkflowBundle): { codePath: string } | { code: string } {
  return "codePath" in bundle ? { codePath: bundle.codePath } : { code: bundle.code };
}

/**
 * Only the queue of the workflows has versions: a sandbox belongs to its host, whatever is deployed there. The id is short: the
 * SDK's own is 90 bytes and appears in six events of every step, a quarter of the history.
 */
function versionOf(
  { buildId, versioning }: WorkerConfig,
  hasWorkflows: boolean,
): Pick<WorkerOptions, "buildId" | "workerDeploymentOptions"> {
  if (versioning === undefined || !hasWorkflows) return { buildId };
  return {
    workerDeploymentOptions: {
      version: { deploymentName: versioning.deployment, buildId },
      useWorkerVersioning: true,
      defaultVersioningBehavior: versioning.behavior === "pinned" ? "PINNED" : "AUTO_UPGRADE",
    },
  };
}

/** The worker's functions that the workflow calls: see `workflows/run.ts`. */
export function workflowSinks(
  announceStop: WorkerParts["announceStop"] = () => undefined,
): InjectedSinks<Sinks> {
  return {
    stops: { announce: { fn: ({ workflowId }) => announceStop(workflowId), callDuringReplay: false } },
  };
}

/** One worker for each distinct queue; the workflows' own has the bundle. */
export function workerOptions(parts: WorkerParts): WorkerOptions[] {
  const { config } = parts;
  const { workflows, models, sandbox, admin, modelCallsPerSecond } = config.queues;
  return [...new Set([workflows, models, sandbox, admin])].map((taskQueue) => ({
    connection: parts.connection,
    namespace: parts.namespace,
    taskQueue,
    workflowBundle: taskQueue === workflows ? bundleOption(parts.bundle) : undefined,
    activities: { ...parts.activities },
    dataConverter: createDataConverter(config.codecKeys),
    interceptors: { activity: [activityInterceptors] },
    ...versionOf(config, taskQueue === workflows),
    identity: parts.identity ?? `${process.pid}@${hostname()}:${config.buildId}`,
    maxConcurrentActivityTaskExecutions: config.activitySlots,
    ...(taskQueue === workflows
      ? {
          maxConcurrentWorkflowTaskExecutions: WORKFLOW_SLOTS,
          maxCachedWorkflows: CACHED_WORKFLOWS,
        }
      : {}),
    // Eager dispatch ignores a queue's rate, so it only holds on a separate queue.
    maxTaskQueueActivitiesPerSecond:
      taskQueue === models && models !== workflows && modelCallsPerSecond !== undefined
        ? modelCallsPerSecond
        : undefined,
    workflowTaskPollerBehavior: POLLERS,
    activityTaskPollerBehavior: POLLERS,
    // Heartbeats carry cancels back and are sent when one is expected, so the SDK must not delay them.
    maxHeartbeatThrottleInterval: FIRST_LOOK_MS,
    defaultHeartbeatThrottleInterval: FIRST_LOOK_MS,
    sinks: workflowSinks(parts.announceStop),
    // With the default of 10 s, the step after a kill -9 waits that long. Source: measured 2026-11 (14 s against 5 s).
    stickyQueueScheduleToStartTimeout: "1s",
    shutdownGraceTime: config.shutdownGraceMs,
    // After this the process ends even if something hangs; compose's stop_grace_period is longer.
    shutdownForceTime: config.shutdownGraceMs + 8_000,
  }));
}
