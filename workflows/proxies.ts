/**
 * The only place with activity options. Cancellation type, attempts, heartbeat and timeouts are explicit for each,
 * because the SDK's defaults differ from its typings (an undefined cancellation type means TRY_CANCEL).
 */
import { ActivityCancellationType, proxyActivities, type ActivityOptions } from "@temporalio/workflow";
import { jsonBytes } from "../activities/contract/guidance.ts";
import type { AgentActivities } from "../activities/contract/activities.ts";
import type { BatchActivities } from "../activities/contract/batch.ts";
import type { FollowActivities } from "../activities/contract/follow.ts";
import type { WarmActivities, WarmPlan } from "../activities/contract/warm.ts";
import type { RunPolicy } from "../activities/contract/run-policy.ts";
import { TRIES } from "../activities/contract/tries.ts";

/** After this a missing worker is noticed. Source: requirement 7.1. */
const HEARTBEAT_TIMEOUT_MS = 30_000;
const MINUTE_MS = 60_000;
/** For runs whose policy has no value. Chosen: longer than a host's worker is away during a deploy. */
const HOST_TIMEOUT_MS = 90_000;
/** Cut on a code point, well below the 400 bytes, with quotes, that Web UI and server take. Source: Temporal's documentation. */
const MAX_SUMMARY_CHARS = 90;
const MAX_SUMMARY_BYTES = 280;

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

type OptionsPolicy = Pick<RunPolicy, "timeouts" | "taskQueues" | "takesTurns" | "verify">;

/** Options by activity; queues and the model's and tools' own timeouts come with the policy. */
export function activityOptions(policy: OptionsPolicy, sandboxQueue: string | undefined) {
  const { timeouts } = policy;
  const common = {
    ...COMMON,
    heartbeatTimeout: timeouts.heartbeatMs ?? HEARTBEAT_TIMEOUT_MS,
    allowEagerDispatch: policy.takesTurns ? false : undefined,
  };
  // For a host's own queue: if no worker takes the call, the host is gone. The server never retries this timeout.
  const host = {
    ...queue(sandboxQueue),
    scheduleToStartTimeout: sandboxQueue === undefined ? undefined : (timeouts.hostMs ?? HOST_TIMEOUT_MS),
  };
  const onHost = (timeoutMs: number, tries: number = TRIES.away) => ({
    ...common,
    ...host,
    startToCloseTimeout: timeoutMs,
    retry: retry(tries),
  });
  const brief = {
    ...common,
    ...queue(policy.taskQueues.admin),
    startToCloseTimeout: MINUTE_MS,
    retry: retry(TRIES.away),
  };
  const final = { ...brief, retry: retry(TRIES.day) };
  const model = { ...common, ...queue(policy.taskQueues.models), startToCloseTimeout: timeouts.modelMs };
  return {
    // Longer than a restore takes, in addition to the set-up of a base that is made again.
    openSandbox: onHost((timeouts.setupMs ?? 0) + 6 * MINUTE_MS, TRIES.begin),
    // In addition to the commands' own time: opening the sandbox, and restoring or keeping their result.
    setUpSandbox: onHost((timeouts.setupMs ?? 0) + 10 * MINUTE_MS, TRIES.begin),
    // Allows for the first clone of a large repository and for the set-up in its base; the activity itself gives up on an unreachable
    // remote.
    fetchRepository: onHost((timeouts.setupMs ?? 0) + 60 * MINUTE_MS, TRIES.begin),
    // In addition to the commands' own time: opening the sandbox, setting it up again or a fresh one, making the commit.
    verifyWork: {
      ...onHost((policy.verify?.timeoutMs ?? 0) + (timeouts.setupMs ?? 0) + 30 * MINUTE_MS),
      retry: retry(TRIES.call, 15_000),
    },
    publish: onHost(30 * MINUTE_MS),
    refreshCheckout: onHost(10 * MINUTE_MS, TRIES.begin),
    storeGuidance: final,
    // Refusals are not retried at all.
    modelStep: { ...model, retry: retry(TRIES.deferred, 2 * MINUTE_MS) },
    runTool: { ...onHost(timeouts.toolMs), retry: retry(TRIES.call, 15_000) },
    ...all(ASKING, brief),
    // Includes a save of the workspace as the delegate's first files.
    openDelegate: onHost(6 * MINUTE_MS),
    settleDelegate: onHost(10 * MINUTE_MS),
    summarize: { ...model, retry: retry(TRIES.deferred) },
    undoCompaction: brief,
    prune: brief,
    saveWorkspace: onHost(5 * MINUTE_MS),
    // Each look is an attempt; a lost sandbox is no reason to look for ever.
    watchSandbox: { ...onHost(10 * MINUTE_MS), retry: retry(TRIES.deferred) },
    checkCommands: { ...onHost(MINUTE_MS), retry: retry(TRIES.begin) },
    parkSandbox: onHost(5 * MINUTE_MS),
    // A lost host must not keep the run from ending. Nor may an unreachable engine: the activity itself gives up.
    closeSandbox: {
      ...onHost(5 * MINUTE_MS),
      scheduleToStartTimeout: Math.min(MINUTE_MS, timeouts.hostMs ?? MINUTE_MS),
    },
    closeSession: final,
  } satisfies Record<Exclude<keyof AgentActivities, "openSession">, ActivityOptions>;
}

/** About people and waits: short, and apart from the work. */
const ASKING = [
  "askPerson",
  "settleQuestion",
  "askBudget",
  "settleBudget",
  "notify",
  "markWaiting",
  "beginWait",
  "endWait",
] as const;

const all = <Name extends string, Options>(names: readonly Name[], options: Options) =>
  Object.fromEntries(names.map((name) => [name, options])) as Record<Name, Options>;

function queue(name: string | undefined): { taskQueue?: string } {
  return name === undefined ? {} : { taskQueue: name };
}

/** Options of the run's first activity, before any policy is known: it stays on the workflow's own queue. */
export const OPEN_SESSION_OPTIONS = {
  ...COMMON,
  startToCloseTimeout: MINUTE_MS,
  retry: retry(TRIES.away),
} satisfies ActivityOptions;

const activities = proxyActivities<AgentActivities>(OPEN_SESSION_OPTIONS);

export const { openSession } = activities;

/** Shorter than a session's: nothing else detects a lost worker of a batch. Chosen by judgement: it bounds how long one stands still. */
const BATCH_HEARTBEAT_TIMEOUT_MS = 10_000;

/** One activity reads and writes the files of as many sessions as may run at once. */
export const batchActivities = proxyActivities<BatchActivities>({
  ...COMMON,
  heartbeatTimeout: BATCH_HEARTBEAT_TIMEOUT_MS,
  startToCloseTimeout: 10 * MINUTE_MS,
  retry: retry(TRIES.day),
});

/** One look may read long logs, and has a repository fetched. */
export const followActivities = proxyActivities<FollowActivities>({
  ...COMMON,
  startToCloseTimeout: 10 * MINUTE_MS,
  retry: retry(TRIES.day),
});

export const warmActivities = proxyActivities<WarmActivities>({
  ...COMMON,
  startToCloseTimeout: MINUTE_MS,
  retry: retry(TRIES.day),
});

/** Like a session's `fetchRepository`; on the queue of one host. */
export const warmHostActivity = (
  { setupMs, hostMs }: WarmPlan,
  taskQueue: string | undefined,
): Pick<WarmActivities, "warmHost"> =>
  proxyActivities<WarmActivities>({
    ...COMMON,
    ...queue(taskQueue),
    scheduleToStartTimeout: hostMs,
    startToCloseTimeout: setupMs + 60 * MINUTE_MS,
    retry: retry(TRIES.begin),
  });

export type Bound = Exclude<keyof AgentActivities, "openSession">;
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
  const end = chars.findIndex((char, index) => {
    bytes += jsonBytes(char);
    return bytes > MAX_SUMMARY_BYTES || (index === MAX_SUMMARY_CHARS - 1 && chars.length > MAX_SUMMARY_CHARS);
  });
  return end === -1 ? summary : `${chars.slice(0, end).join("")}…`;
}
