/**
 * The only place with activity options. Cancellation type, attempts, heartbeat and timeouts are explicit for each: what
 * is left out is not what the SDK's typings say it is (an undefined cancellation type means TRY_CANCEL).
 */
import { ActivityCancellationType, proxyActivities, type ActivityOptions } from "@temporalio/workflow";
import { jsonBytes } from "../activities/contract/guidance-items.ts";
import type { AgentActivities } from "../activities/contract/activities.ts";
import type { BatchActivities } from "../activities/contract/batch.ts";
import type { RunPolicy } from "../activities/contract/run-policy.ts";

/** A worker that is gone is noticed after this. Source: requirement 7.1. */
const HEARTBEAT_TIMEOUT_MS = 30_000;
const MINUTE_MS = 60_000;
/** Of runs whose policy does not say. Source: survey of durable engines, D18 (60-120 s). */
const HOST_TIMEOUT_MS = 90_000;
/** Web UI and server take 400 bytes with quotes; cut well below on a code point. Source: survey of command lines, X8. */
const MAX_SUMMARY_CHARS = 90;
const MAX_SUMMARY_BYTES = 280;

/**
 * A database, an engine or a host that is away for a quarter of an hour is waited for, whatever the step was doing: so
 * many attempts, a minute apart at most, take that long.
 */
const AWAY_ATTEMPTS = 20;

/**
 * Attempts that find their model's limits used up wait for as long as that takes: the activities themselves count the others, and
 * end after so many as they are given. Source: ours, more than a week of the shortest long wait.
 */
const WAITING_ATTEMPTS = 100_000;

const COMMON = {
  cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
  heartbeatTimeout: HEARTBEAT_TIMEOUT_MS,
} as const satisfies ActivityOptions;

const retry = (maximumAttempts: number, maximumIntervalMs = MINUTE_MS) => ({
  initialInterval: 1_000,
  backoffCoefficient: 2,
  maximumInterval: maximumIntervalMs,
  maximumAttempts,
});

type OptionsPolicy = Pick<
  RunPolicy,
  | "modelTimeoutMs"
  | "toolTimeoutMs"
  | "taskQueues"
  | "heartbeatTimeoutMs"
  | "hostTimeoutMs"
  | "setupTimeoutMs"
  | "takesTurns"
>;

/** Options by activity; queues and the model's and tools' own timeouts come with the policy. */
export function activityOptions(policy: OptionsPolicy, sandboxQueue: string | undefined) {
  const common = {
    ...COMMON,
    heartbeatTimeout: policy.heartbeatTimeoutMs ?? HEARTBEAT_TIMEOUT_MS,
    ...(policy.takesTurns ? { allowEagerDispatch: false } : {}),
  };
  // Of a host's own queue: if no worker takes the call, the host is gone. Never retried by the server.
  const host = {
    ...queue(sandboxQueue),
    ...(sandboxQueue === undefined
      ? {}
      : { scheduleToStartTimeout: policy.hostTimeoutMs ?? HOST_TIMEOUT_MS }),
  };
  const onHost = (timeoutMs: number, attempts = AWAY_ATTEMPTS) => ({
    ...common,
    ...host,
    startToCloseTimeout: timeoutMs,
    retry: retry(attempts),
  });
  const brief = {
    ...common,
    ...queue(policy.taskQueues.admin),
    startToCloseTimeout: MINUTE_MS,
    retry: retry(AWAY_ATTEMPTS),
  };
  const model = { ...common, ...queue(policy.taskQueues.models), startToCloseTimeout: policy.modelTimeoutMs };
  return {
    // Longer than a restore may take.
    openSandbox: onHost(6 * MINUTE_MS, 8),
    // Besides the commands: opening the sandbox, and taking or keeping what they made.
    setUpSandbox: onHost((policy.setupTimeoutMs ?? 0) + 10 * MINUTE_MS, 8),
    // A first clone of a large repository; a remote that is away is given up by the activity itself.
    fetchRepository: onHost(60 * MINUTE_MS, 8),
    publish: onHost(30 * MINUTE_MS),
    parkGuidance: brief,
    announceQueued: brief,
    // A provider that is away for an hour is waited for (MODEL_ATTEMPTS); refusals are not retried at all.
    modelStep: { ...model, retry: retry(WAITING_ATTEMPTS, 2 * MINUTE_MS) },
    runTool: { ...onHost(policy.toolTimeoutMs), retry: retry(AWAY_ATTEMPTS * 3, 15_000) },
    askPerson: brief,
    settleQuestion: brief,
    askBudget: brief,
    settleBudget: brief,
    notify: brief,
    markWaiting: brief,
    // A save of the workspace, as the delegate's first files; its files are few.
    openDelegate: onHost(6 * MINUTE_MS),
    settleDelegate: onHost(10 * MINUTE_MS),
    summarize: { ...model, retry: retry(WAITING_ATTEMPTS) },
    undoCompaction: brief,
    prune: brief,
    saveWorkspace: onHost(5 * MINUTE_MS),
    parkSandbox: onHost(5 * MINUTE_MS),
    // A host that is gone must not keep the run from ending; nor an engine that is away: the activity itself gives up.
    closeSandbox: {
      ...onHost(5 * MINUTE_MS),
      scheduleToStartTimeout: Math.min(MINUTE_MS, policy.hostTimeoutMs ?? MINUTE_MS),
    },
    closeSession: brief,
  } satisfies Record<Exclude<keyof AgentActivities, "openSession">, ActivityOptions>;
}

function queue(name: string | undefined): { taskQueue?: string } {
  return name === undefined ? {} : { taskQueue: name };
}

/** Of the run's first activity, before any policy is known: it stays on the workflow's own queue. */
export const OPEN_SESSION_OPTIONS = {
  ...COMMON,
  startToCloseTimeout: MINUTE_MS,
  retry: retry(AWAY_ATTEMPTS),
} satisfies ActivityOptions;

const activities = proxyActivities<AgentActivities>(OPEN_SESSION_OPTIONS);

export const { openSession } = activities;

/** A batch waits for services that are away for a day: so many attempts, a minute apart. */
const BATCH_ATTEMPTS = 1_440;
/** Shorter than a session's: a batch's worker that is gone is noticed by this alone. Source: ours. */
const BATCH_HEARTBEAT_TIMEOUT_MS = 10_000;

/** Files of as many sessions as may run at once are read and written by one of them. */
export const batchActivities = proxyActivities<BatchActivities>({
  ...COMMON,
  heartbeatTimeout: BATCH_HEARTBEAT_TIMEOUT_MS,
  startToCloseTimeout: 10 * MINUTE_MS,
  retry: retry(BATCH_ATTEMPTS),
});

type Bound = Exclude<keyof AgentActivities, "openSession">;
/** The proxy's method for options at the call's site, typed for one activity. */
type Perform<Name extends Bound> = {
  executeWithOptions(
    options: ActivityOptions,
    args: Parameters<AgentActivities[Name]>,
  ): Promise<Awaited<ReturnType<AgentActivities[Name]>>>;
};

/** Runs an activity with its options and the line that the Web UI shows for it. */
export function perform<Name extends Bound>(
  name: Name,
  options: ReturnType<typeof activityOptions>,
  summary: string,
  ...args: Parameters<AgentActivities[Name]>
): Promise<Awaited<ReturnType<AgentActivities[Name]>>> {
  const activity = activities[name] as Perform<Name>;
  return activity.executeWithOptions({ ...options[name], summary: boundedSummary(summary) }, args);
}

/** At most 90 characters and 280 bytes, cut between code points: 300 bytes with its quotes. Source: requirement 7.1. */
export function boundedSummary(summary: string): string {
  const chars = Array.from(summary);
  let bytes = 0;
  const end = chars.findIndex((char, place) => {
    bytes += jsonBytes(char);
    return bytes > MAX_SUMMARY_BYTES || (place === MAX_SUMMARY_CHARS - 1 && chars.length > MAX_SUMMARY_CHARS);
  });
  return end === -1 ? summary : `${chars.slice(0, end).join("")}…`;
}
