/** Takes a session back to the moment before a step, by Temporal's own reset: what `retry` does, and the Web UI too. */
import { randomUUID } from "node:crypto";
import type { SessionRow } from "../activities/store/reading.ts";
import { runIdsOf, takeOver } from "../activities/store/runs.ts";
import { lastStep } from "../activities/store/sessions.ts";
import type { Services } from "./connection.ts";
import { describeRun } from "./describe-run.ts";
import { notPossible, usageError } from "./errors.ts";
import { findResetPoint } from "./reset-point.ts";

/** Temporal's numbers for what of the abandoned events is not applied to the new run. */
const SIGNAL = 1;
const UPDATE = 2;
const CANCEL_REQUEST = 4;

export interface Retry {
  /** The first step that is done again; undefined: the newest that began. */
  readonly fromStep: number | undefined;
  /** What was said since then is not said again. */
  readonly dropMessages: boolean;
}

export interface Retried {
  readonly step: number;
  readonly fromRun: string;
  readonly runId: string;
  readonly epoch: number;
}

/**
 * A run that goes on is ended by it; an earlier one of a session that has outgrown several is found.
 * @throws ClientError (usage) for a step that never was, (impossible) where there is nothing to go back to
 */
export async function retrySession(services: Services, row: SessionRow, retry: Retry): Promise<Retried> {
  const { store } = services;
  const client = await services.temporal.client();
  const last = await lastStep(store.db, row.id);
  if (retry.fromStep !== undefined) requireStep(row.id, retry.fromStep, last);
  const newest = (await describeRun(services.temporal, row.id))?.runId;
  const known = await runIdsOf(store.db, row.id);
  const runIds = [...new Set([...(newest === undefined ? [] : [newest]), ...known])];
  const found = await findResetPoint(client, row.id, runIds, retry.fromStep);
  if (found.kind === "gone") throw historyGone(row.id, retry.fromStep ?? last);
  if (found.kind === "never") {
    if (retry.fromStep !== undefined && last > 0) throw outOfRange(row.id, retry.fromStep, last);
    throw notPossible(`${row.id} has not begun a step: there is nothing to retry.`);
  }
  const { point } = found;
  const { runId } = await client.workflowService.resetWorkflowExecution({
    namespace: client.options.namespace,
    workflowExecution: { workflowId: row.id, runId: point.runId },
    reason: `longhaul retry --from-step ${point.step}`,
    workflowTaskFinishEventId: point.taskFinishedEventId,
    requestId: randomUUID(),
    // A cancel of the old line is none of the new one's.
    resetReapplyExcludeTypes: [CANCEL_REQUEST, ...(retry.dropMessages ? [SIGNAL, UPDATE] : [])],
  });
  // The run's first activity would do this; done here, whoever watches sees it even while no worker runs.
  const { step, round } = point;
  const taken = await takeOver(
    store,
    { sessionId: row.id, runId },
    { step, phase: "model", ...(round === undefined ? {} : { round }) },
  );
  return {
    step,
    fromRun: point.runId,
    runId,
    epoch: taken === "superseded" ? row.epoch : taken.epoch,
  };
}

/** @throws ClientError (usage) where the session's live line has no such step */
export function requireStep(id: string, step: number, last: number): void {
  if (step < 1 || step > last + 1) throw outOfRange(id, step, last);
}

function outOfRange(id: string, step: number, last: number) {
  return usageError(
    last === 0 ? `${id} has no finished step yet.` : `${id} has the steps 1 to ${last}, and no step ${step}.`,
    `longhaul status ${id} tells where it stands.`,
  );
}

function historyGone(id: string, step: number) {
  return notPossible(
    `Temporal no longer has the history in which ${id} began step ${step}: its retention is over.`,
    `The conversation is kept. Go on from there in a session of its own: longhaul fork ${id} --from-step ${Math.max(1, step)}`,
  );
}
