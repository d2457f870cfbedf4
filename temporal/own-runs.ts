/**
 * The runs of this installation. Several may share a namespace, each with a database and a task queue of its own, and use one id: a run
 * is ours if it is on our queue, or if our rows have it or its chain, as after a change of the queue.
 */
import type { Client } from "@temporalio/client";
import type { Queryable } from "../activities/store/db.ts";
import { hasClaimed } from "../activities/store/runs.ts";
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
}

/** @param workflowId a session's or a batch's */
export async function isRunOfOthers(
  own: Installation,
  workflowId: string,
  { runId, chain, taskQueue }: AnyRun,
): Promise<boolean> {
  return taskQueue !== own.taskQueue && !(await hasClaimed(own.db, workflowId, { runId, chain }));
}

/** A described run, as far as it tells whose it is. */
export function placeOfRun({ runId, raw }: DescribedRun): AnyRun {
  const { firstRunId, taskQueue } = raw.workflowExecutionInfo ?? {};
  return {
    runId,
    chain: firstRunId || runId,
    taskQueue: raw.executionConfig?.taskQueue?.name ?? taskQueue ?? "",
  };
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
  return run === undefined || (await isRunOfOthers(own, workflowId, placeOfRun(run))) ? undefined : run;
}

/** Newest first. The list may lag behind by a moment. */
export async function* listOwnRuns(
  client: Client,
  own: Installation,
  workflowId: string,
): AsyncGenerator<ListedRun> {
  for await (const run of listRuns(client, { workflowId }))
    if (!(await isRunOfOthers(own, workflowId, { ...run, chain: run.runId }))) yield run;
}
