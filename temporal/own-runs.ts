/**
 * The runs of this installation. Several may share a namespace, each with a database and a task queue of its own, and use one id. A
 * run's memo says which one started it. One without it, which was started past Longhaul, is ours if it is on our queue, or if our
 * rows have it or its chain, as after a change of the queue.
 */
import type { Client } from "@temporalio/client";
import { defaultPayloadConverter } from "@temporalio/common";
import { ownerMemo } from "../activities/contract/run-memo.ts";
import type { Queryable } from "../activities/store/db.ts";
import { readInstallation } from "../activities/store/installation.ts";
import { hasClaimed } from "../activities/store/runs.ts";
import { decodePayloads } from "./codec.ts";
import { describedRun, listRuns, type DescribedRun, type ListedRun } from "./runs.ts";

export interface Installation {
  readonly db: Queryable;
  /** Of its workflows. */
  readonly taskQueue: string;
}

interface AnyRun {
  readonly runId: string;
  /** Id of its chain's first run. */
  readonly chain: string;
  readonly taskQueue: string;
  readonly memo: ListedRun["memo"];
}

/** @param workflowId a session's or a batch's */
export function isRunOfOthers(
  client: Client,
  own: Installation,
  workflowId: string,
  run: DescribedRun,
): Promise<boolean> {
  const { firstRunId, memo } = run.raw.workflowExecutionInfo ?? {};
  const { runId } = run;
  const any = { runId, chain: firstRunId || runId, taskQueue: queueOfRun(run), memo: memo?.fields ?? {} };
  return isOfOthers(client, own, workflowId, any);
}

async function isOfOthers(
  client: Client,
  own: Installation,
  workflowId: string,
  { runId, chain, taskQueue, memo }: AnyRun,
): Promise<boolean> {
  const starter = await starterOf(client, memo);
  if (starter !== undefined) return starter !== (await readInstallation(own.db));
  return taskQueue !== own.taskQueue && !(await hasClaimed(own.db, workflowId, { runId, chain }));
}

/** @returns the installation that started the run; undefined also if its memo is encrypted with a key that we lack */
async function starterOf(client: Client, { installation }: ListedRun["memo"]): Promise<string | undefined> {
  if (!installation) return undefined;
  try {
    // A schedule's memo is encrypted for the schedule's id, not for the runs'.
    const [plain = installation] = await decodePayloads(client, undefined, [installation]);
    return ownerMemo({ installation: defaultPayloadConverter.fromPayload(plain) })?.installation;
  } catch {
    return undefined;
  }
}

export function queueOfRun({ raw }: DescribedRun): string {
  return raw.executionConfig?.taskQueue?.name ?? raw.workflowExecutionInfo?.taskQueue ?? "";
}

/**
 * @param runId default: the newest
 * @returns undefined for a run that never began, is another installation's, or whose retention is over
 */
export async function describedOwnRun(
  client: Client,
  own: Installation,
  workflowId: string,
  runId?: string,
): Promise<DescribedRun | undefined> {
  const run = await describedRun(client, workflowId, runId);
  return run === undefined || (await isRunOfOthers(client, own, workflowId, run)) ? undefined : run;
}

/** Newest first. The list may lag behind by a moment. */
export async function* listOwnRuns(
  client: Client,
  own: Installation,
  which: Parameters<typeof listRuns>[1],
): AsyncGenerator<ListedRun> {
  for await (const run of listRuns(client, which))
    if (!(await isOfOthers(client, own, run.workflowId, { ...run, chain: run.runId }))) yield run;
}
