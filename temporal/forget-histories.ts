/** Removes the histories of deleted sessions from Temporal, where what people said is kept too. */
import type { Client } from "@temporalio/client";
import { followWorkflowId } from "../activities/contract/follow.ts";
import { reasonOf } from "../activities/contract/errors.ts";
import { type Installation, listOwnRuns } from "./own-runs.ts";
import { isNotFound } from "./runs.ts";

export interface Forgotten {
  readonly deleted: number;
  /** Runs whose histories Temporal keeps until its own retention ends, and why. */
  readonly left: number;
  readonly reason?: string;
}

interface ForgetRequest {
  readonly ids: readonly string[];
  readonly runs: readonly { readonly id: string; readonly runId: string }[];
}

/** Timeout of one request, in ms. */
const ANSWER_MS = 10_000;

/** @param runs those that are known; Temporal's list adds the others, without another installation's under the same ids */
export async function forgetHistories(
  client: Client,
  own: Installation,
  { ids, runs }: ForgetRequest,
): Promise<Forgotten> {
  const all = new Map(runs.map((run) => [run.runId, run]));
  let deleted = 0;
  const reasons: string[] = [];
  try {
    for (const id of ids.flatMap((session) => [session, followWorkflowId(session)]))
      for await (const { runId } of listOwnRuns(client, own, { workflowId: id }))
        all.set(runId, { id, runId });
  } catch (error) {
    reasons.push(reasonOf(error));
  }
  for (const { id, runId } of all.values()) {
    const request = {
      namespace: client.options.namespace,
      workflowExecution: { workflowId: id, runId },
    };
    try {
      await client.withAbortSignal(AbortSignal.timeout(ANSWER_MS), () =>
        client.workflowService.deleteWorkflowExecution(request),
      );
      deleted += 1;
    } catch (error) {
      if (isNotFound(error)) continue;
      reasons.push(reasonOf(error));
    }
  }
  const [reason] = reasons;
  return { deleted, left: reasons.length, reason };
}
