/**
 * Runs as Temporal has them: described and listed without decoding what they carry, which may be encrypted with keys that we lack;
 * read whole where the keys are there; asked once more for questions that Postgres lost.
 */
import { type Client, type WorkflowExecutionDescription, WorkflowNotFoundError } from "@temporalio/client";
import type { Payload } from "@temporalio/common";
import { isNamespaceMissing } from "./service-missing.ts";
import { WORKFLOW_TYPE, askAgainSignal, statusQuery } from "../workflows/messages.ts";
import { decodePayloads } from "./codec.ts";
import type { Queryable } from "../activities/store/db.ts";
import { openQuestions } from "../activities/store/questions.ts";
import { askWithin } from "./patience.ts";

export interface DescribedRun {
  readonly runId: string;
  readonly status: RunStatus;
  readonly startedMs: number;
  readonly raw: WorkflowExecutionDescription["raw"];
}

/** In the order of temporal.api.enums.v1.WorkflowExecutionStatus. */
const STATUSES = [
  "UNSPECIFIED",
  "RUNNING",
  "COMPLETED",
  "FAILED",
  "CANCELLED",
  "TERMINATED",
  "CONTINUED_AS_NEW",
  "TIMED_OUT",
  "PAUSED",
] as const;

export type RunStatus = (typeof STATUSES)[number];

/**
 * @param runId default: the newest
 * @returns undefined for a run that never began, is another namespace's, or whose retention is over
 */
export async function describedRun(
  { workflowService, options: { namespace } }: Client,
  workflowId: string,
  runId?: string,
): Promise<DescribedRun | undefined> {
  try {
    const raw = await workflowService.describeWorkflowExecution({
      namespace,
      execution: { workflowId, runId },
    });
    const { execution, status, startTime } = raw.workflowExecutionInfo ?? {};
    return {
      runId: execution?.runId ?? "",
      status: statusName(status),
      startedMs: millisecondsOf(startTime),
      raw,
    };
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

function statusName(code: number | null | undefined): RunStatus {
  return STATUSES[code ?? 0] ?? "UNSPECIFIED";
}

type Timestamp = NonNullable<
  NonNullable<WorkflowExecutionDescription["raw"]["workflowExecutionInfo"]>["startTime"]
>;

/** @returns 0 if there is none */
function millisecondsOf(time: Timestamp | null | undefined): number {
  return Number(time?.seconds ?? 0) * 1_000 + Math.floor((time?.nanos ?? 0) / 1e6);
}

/** @returns undefined for a run that never began, is another namespace's, or whose retention is over */
export async function whereFound<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return undefined;
    throw error;
  }
}

/** gRPC's status code. */
const NOT_FOUND = 5;

/** The same for a direct call of the service. A namespace that is missing says nothing about its runs. */
export function isNotFound(error: unknown): boolean {
  return (
    typeof error === "object" &&
    error !== null &&
    "code" in error &&
    error.code === NOT_FOUND &&
    !isNamespaceMissing(error)
  );
}

/** The server's own limit. */
const PAGE_SIZE = 1_000;
/** Timeout for all pages. Chosen: 10,000 sessions are ten pages. */
const LIST_MS = 30_000;

export interface ListedRun {
  readonly workflowId: string;
  readonly runId: string;
  readonly taskQueue: string;
  readonly status: RunStatus;
  readonly startedMs: number;
  /** As it is kept: it may be encrypted. */
  readonly memo: Readonly<Record<string, Payload>>;
}

/**
 * Newest first. The list may lag behind by a moment.
 * @param which of the sessions; or every run of one workflow, whatever its type
 */
export async function* listRuns(
  { workflowService, options: { namespace } }: Client,
  which: "running" | "all" | { readonly workflowId: string },
): AsyncGenerator<ListedRun> {
  const query = queryOf(which);
  let nextPageToken: Uint8Array | undefined;
  do {
    const page = await workflowService.listWorkflowExecutions({
      namespace,
      query,
      pageSize: PAGE_SIZE,
      nextPageToken,
    });
    for (const { execution, taskQueue, status, startTime, memo } of page.executions)
      yield {
        workflowId: execution?.workflowId ?? "",
        runId: execution?.runId ?? "",
        taskQueue: taskQueue ?? "",
        status: statusName(status),
        startedMs: millisecondsOf(startTime),
        memo: memo?.fields ?? {},
      };
    nextPageToken = page.nextPageToken;
  } while (nextPageToken !== undefined && nextPageToken.length > 0);
}

function queryOf(which: "running" | "all" | { readonly workflowId: string }): string {
  if (typeof which === "object") return `WorkflowId = '${which.workflowId.replaceAll(/['\\]/g, "\\$&")}'`;
  return `WorkflowType = '${WORKFLOW_TYPE}'${which === "all" ? "" : " and ExecutionStatus = 'Running'"}`;
}

/**
 * Ids of the sessions that Temporal lists as running. The list lags behind by moments: one that has just begun may be missing,
 * one that has just ended may be in it. Before acting on a session that is missing, ask for it by its id.
 * @returns none if the server cannot list
 */
export async function listedAsRunning(client: Client): Promise<ReadonlySet<string>> {
  const ids = new Set<string>();
  try {
    await client.withAbortSignal(AbortSignal.timeout(LIST_MS), async () => {
      for await (const { workflowId } of listRuns(client, "running")) ids.add(workflowId);
    });
    return ids;
  } catch {
    return new Set();
  }
}

export type History = Awaited<ReturnType<ReturnType<Client["workflow"]["getHandle"]>["fetchHistory"]>>;

/**
 * Decodes people's messages and the activities' inputs and results, with the client's keys.
 * @throws WorkflowNotFoundError if Temporal has no such run, CodecKeyMissing if a key is
 */
export async function readHistory(client: Client, workflowId: string, runId: string): Promise<History> {
  const history = await client.workflow.getHandle(workflowId, runId).fetchHistory();
  for (const event of history.events ?? []) {
    const update =
      event.workflowExecutionUpdateAdmittedEventAttributes?.request?.input ??
      event.workflowExecutionUpdateAcceptedEventAttributes?.acceptedRequest?.input;
    for (const list of [
      event.workflowExecutionStartedEventAttributes?.input,
      event.workflowExecutionSignaledEventAttributes?.input,
      event.activityTaskScheduledEventAttributes?.input,
      event.activityTaskCompletedEventAttributes?.result,
      update?.args,
    ])
      if (list?.payloads) list.payloads = await decodePayloads(client, workflowId, list.payloads);
  }
  return history;
}

const QUERY_MS = 5_000;

/** `silent`: the run did not say what it waits for, so nothing was done and nothing is known. */
export type AskedAgain = "asked" | "nothing-gone" | "silent";

/** Makes a run store again the questions that it waits for and Postgres lacks. */
export async function askAgainIfGone(
  { db, client }: { readonly db: Queryable; readonly client: Client },
  sessionId: string,
): Promise<AskedAgain> {
  const handle = client.workflow.getHandle(sessionId);
  const view = await askWithin(client, QUERY_MS, () => handle.query(statusQuery)).catch(() => undefined);
  if (view === undefined) return "silent";
  if (view.questions.length === 0) return "nothing-gone";
  const stored = new Set((await openQuestions(db, sessionId)).map(({ id }) => id));
  if (view.questions.every(({ id }) => stored.has(id))) return "nothing-gone";
  await handle.signal(askAgainSignal);
  return "asked";
}
