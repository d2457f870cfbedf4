/** Temporal's description of a session's run, and what keeps it from going on: our own rows may lack it, if writing rows is what fails. */
import type { Client } from "@temporalio/client";
import { defaultPayloadConverter, WorkflowNotFoundError, type Payload } from "@temporalio/common";
import { parseProgress } from "../../activities/contract/calls.ts";
import type { Services } from "./connection.ts";
import { describedRun, type DescribedRun } from "../../temporal/runs.ts";
import { decodePayloads } from "../../temporal/codec.ts";
import { askWithin } from "../../temporal/patience.ts";
import { harmlessLine } from "../console/format.ts";
import { isRunOfOthers, queueOfRun } from "../../temporal/own-runs.ts";
import { unlessTableMissing } from "../lookup/unless-table-missing.ts";

/** Chosen: a machine with ten times the work it can do answers within some seconds. */
const DESCRIBE_MS = 10_000;

export interface RunDescription {
  /** `RUNNING`, `COMPLETED` …, or `GONE` if Temporal has no such run of this installation. */
  readonly status: string;
  readonly runId: string | undefined;
  /** Build of the only workers that may serve it; absent if it is not pinned to one. */
  readonly build?: string;
  /** What fails repeatedly, in words: an activity, or the workflow. */
  readonly trouble?: string;
  /** The command's last output by the call's key, from the last heartbeat. */
  readonly output?: ReadonlyMap<string, string>;
}

/**
 * Undefined if Temporal does not answer. Never throws; a server that is away is told by its connection, within 10 s.
 * @param run default: the session's newest
 */
export async function describeRun(
  services: Services,
  sessionId: string,
  run?: string,
): Promise<RunDescription | undefined> {
  try {
    const client = await services.temporal.client();
    return await askWithin(client, DESCRIBE_MS, () => describe(services, client, { sessionId, run }));
  } catch {
    return undefined;
  }
}

/** Whether a run of a session's or a batch's id is another installation's, which shares the namespace. */
export async function isOthersRun(
  { store, temporal, taskQueue }: Pick<Services, "store" | "temporal" | "taskQueue">,
  workflowId: string,
  run: DescribedRun,
): Promise<boolean> {
  const client = await temporal.client();
  const isOthers = () => isRunOfOthers(client, { db: store.db, taskQueue }, workflowId, run);
  return (await unlessTableMissing(isOthers)) ?? queueOfRun(run) !== taskQueue;
}

async function describe(
  services: Services,
  client: Client,
  { sessionId, run }: { readonly sessionId: string; readonly run: string | undefined },
): Promise<RunDescription> {
  const described = await describedRun(client, sessionId, run);
  if (described === undefined || (await isOthersRun(services, sessionId, described)))
    return { status: "GONE", runId: undefined };
  // The status is known even if the history, which says what fails, cannot be read.
  const trouble = await troubleOf(client, sessionId, described).catch(() => undefined);
  return {
    status: described.status,
    runId: described.runId,
    output: await outputOf(client, sessionId, described),
    trouble,
    build: buildOf(described),
  };
}

/** temporal.api.enums.v1.VersioningBehavior */
const PINNED = 1;

/** An operator's override takes precedence over the run's own workers. */
function buildOf({ raw }: DescribedRun): string | undefined {
  const { behavior, deploymentVersion, versioningOverride } = raw.workflowExecutionInfo?.versioningInfo ?? {};
  if (versioningOverride?.autoUpgrade === true) return undefined;
  const version =
    versioningOverride?.pinned?.version ?? (behavior === PINNED ? deploymentVersion : undefined);
  return version?.buildId ?? undefined;
}

/** @returns undefined if Temporal has no such run, or the run has ended */
export async function unlessGone<T>(request: () => Promise<T>): Promise<T | undefined> {
  try {
    return await request();
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return undefined;
    throw error;
  }
}

async function outputOf(
  client: Client,
  sessionId: string,
  { raw }: DescribedRun,
): Promise<Map<string, string>> {
  const notes = await Promise.all(
    (raw.pendingActivities ?? []).flatMap(({ heartbeatDetails }) =>
      (heartbeatDetails?.payloads ?? []).slice(0, 1).map((payload) => noteOf(client, sessionId, payload)),
    ),
  );
  return new Map(
    notes.flatMap((note) => {
      const progress = note === undefined ? undefined : parseProgress(note);
      return progress === undefined ? [] : [[progress.key, progress.line] as const];
    }),
  );
}

/**
 * The attempt's output note; from the second attempt on, it is nested in the heartbeat's details.
 * @returns undefined also for one that is encrypted with a key that we lack
 */
async function noteOf(client: Client, sessionId: string, payload: Payload): Promise<string | undefined> {
  try {
    const [plain = payload] = await decodePayloads(client, sessionId, [payload]);
    const details = defaultPayloadConverter.fromPayload<string | { readonly note?: unknown } | null>(plain);
    const note = typeof details === "object" ? details?.note : details;
    return typeof note === "string" ? note : undefined;
  } catch {
    return undefined;
  }
}

const WORKFLOW = "the workflow";
/** The newest end of a workflow task is among them, whatever else was sent since. */
const NEWEST_EVENTS = 200;
/** temporal.api.enums.v1.WorkflowTaskFailedCause: a message or an update came while the run ended, it was closed or reset. */
const NO_TROUBLE = new Set([1, 17, 20, 31]);

/** An activity that fails repeatedly, or else the workflow itself, in words. */
export async function troubleOf(
  client: Client,
  sessionId: string,
  run: DescribedRun,
): Promise<string | undefined> {
  return activityTrouble(run) ?? (await workflowTrouble(client, sessionId, run));
}

/** Whether workers fail at the workflow: it takes no message and answers no query. */
export const isOfWorkflow = (trouble: string | null | undefined): boolean =>
  trouble?.startsWith(`${WORKFLOW}, `) === true;

function activityTrouble({ raw }: DescribedRun): string | undefined {
  const failing = raw.pendingActivities?.find(
    ({ attempt, lastFailure }) =>
      (attempt ?? 1) > 1 && lastFailure && lastFailure.applicationFailureInfo?.type !== "NotYetDue",
  );
  if (!failing?.lastFailure) return undefined;
  const name = failing.activityType?.name ?? "an activity";
  return `${name}, attempt ${failing.attempt}: ${failureText(failing.lastFailure)}`;
}

async function workflowTrouble(
  { workflowService, options: { namespace } }: Client,
  workflowId: string,
  { raw, runId }: DescribedRun,
): Promise<string | undefined> {
  if (!raw.pendingWorkflowTask) return undefined;
  const { history } = await workflowService.getWorkflowExecutionHistoryReverse({
    namespace,
    execution: { workflowId, runId },
    maximumPageSize: NEWEST_EVENTS,
  });
  return troubleOfTasks(raw.pendingWorkflowTask.attempt ?? 1, history?.events ?? []);
}

/**
 * What workers fail at, such as one that lacks the key of the run's data, or whose code does not fit the run's history.
 * @param attempt of the task that waits: 1 also after many failures, since a message begins Temporal's count again
 * @param newestFirst events; only the first of several failures in a row is among them
 */
export function troubleOfTasks(attempt: number, newestFirst: readonly TaskEvent[]): string | undefined {
  const newest = newestFirst.find(
    (event) =>
      event.workflowTaskFailedEventAttributes ??
      event.workflowTaskTimedOutEventAttributes ??
      event.workflowTaskCompletedEventAttributes,
  );
  const { cause, failure } = newest?.workflowTaskFailedEventAttributes ?? {};
  if (!failure || NO_TROUBLE.has(cause ?? 0)) return undefined;
  return `${WORKFLOW}, attempt ${attempt}: ${failureText(failure)}`;
}

type Failure = NonNullable<NonNullable<DescribedRun["raw"]["pendingActivities"]>[number]["lastFailure"]>;

/** What an event of a history says of a workflow task's end. */
interface TaskEvent {
  readonly workflowTaskFailedEventAttributes?: {
    readonly cause?: number | null;
    readonly failure?: Failure | null;
  } | null;
  readonly workflowTaskTimedOutEventAttributes?: object | null;
  readonly workflowTaskCompletedEventAttributes?: object | null;
}

/** The message of an encrypted failure says only that it is one. */
function failureText({ message, applicationFailureInfo, encodedAttributes }: Failure): string {
  const type = applicationFailureInfo?.type ?? "failed";
  return harmlessLine(encodedAttributes ? type : `${type}: ${message ?? ""}`, 300);
}
