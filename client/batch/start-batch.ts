/** Starts a batch, or the rest of one that is incomplete: first the rows, then the workflow. */
import { WorkflowExecutionAlreadyStartedError, type Client } from "@temporalio/client";
import { BATCH_WORKFLOW_TYPE, batchWorkflowId, batchStatus } from "../../activities/contract/batch.ts";
import type { AttemptsOrder } from "../../activities/contract/attempts.ts";
import type { OwnerMemo } from "../../activities/contract/run-memo.ts";
import {
  batchFigures,
  endBatch,
  isTakenId,
  listItems,
  openBatch,
  placeItem,
  saveItem,
  settleItems,
  type ItemRow,
  type NewItem,
  findBatch,
} from "../../activities/store/batches.ts";
import type { SessionBatchInput } from "../../workflows/session-batch.ts";
import type { Services } from "../connect/connection.ts";
import { describedRun } from "../../temporal/runs.ts";
import { describeRun, unlessGone } from "../connect/describe-run.ts";
import { requireAccess } from "../connect/readiness.ts";
import { settled } from "../connect/missing-service.ts";
import { notPossible, missing } from "../console/errors.ts";
import { listNames, shellWord } from "../console/format.ts";
import { plural } from "../../activities/text/format.ts";
import { readStarter, storedStart, type Starter } from "../sessions/start-session.ts";
import { unlessTableMissing } from "../lookup/unless-table-missing.ts";
import { chosenAttempt } from "../../activities/store/attempts.ts";
import { isSameBatch, itemSessionId, planBatch } from "./batch-file.ts";
import type { PreparedItem } from "./prepare-batch.ts";
import { findSessionRow } from "../../activities/store/reading.ts";
import { until } from "../../temporal/patience.ts";
import { readBatch, type BatchDocument } from "./batch-document.ts";

export interface BatchOrder {
  readonly name: string;
  readonly items: readonly PreparedItem[];
  readonly concurrency: number;
  readonly stopAfter: number | undefined;
  /** USD. */
  readonly maxCostUsd: number | undefined;
  /** The items are attempts at one task. */
  readonly attempts?: AttemptsOrder;
}

export interface StartedBatch {
  /** True if the batch was already running with the same items. */
  readonly attached: boolean;
  readonly begun: number;
  readonly completed: number;
}

/** @throws ClientError (impossible) if a batch of this name runs with other items */
export async function startBatch(services: Services, request: BatchOrder): Promise<StartedBatch> {
  const { db } = services.store;
  const { name, items } = request;
  const client = await services.temporal.client();
  const known = (await unlessTableMissing(() => listItems(db, name))) ?? [];
  await requireAccess(services, batchWorkflowId(name));
  if ((await describeRun(services, batchWorkflowId(name)))?.status === "RUNNING") {
    if (!isSameBatch(items, known))
      throw notPossible(
        `The running batch ${name} has other tasks than the file has now.`,
        `Wait for its end, end it with: longhaul cancel ${shellWord(name)}, or give this one another --name.`,
      );
    return { attached: true, begun: 0, completed: completedOf(known) };
  }
  const before = known.length === 0 ? undefined : await findBatch(db, name);
  // What was not chosen is not begun again.
  if (before !== undefined && chosenAttempt(before) !== undefined && before.endedAt !== null) {
    if (request.attempts === undefined || !isSameBatch(items, known))
      throw notPossible(
        `${name} was attempts at another task, and one of them was chosen.`,
        "Give this one another name.",
      );
    return { attached: true, begun: 0, completed: completedOf(known) };
  }
  await settleItems(db, name, running(known));
  const settled = known.length === 0 ? known : await listItems(db, name);
  const plan = planBatch(items, settled);
  if (plan.busy.length > 0)
    throw notPossible(
      `${plural(plan.busy.length, "item")} of ${name} changed, and their earlier sessions still run: ${listNames(plan.busy)}.`,
      "Wait for their end, or cancel them.",
    );
  if (plan.starts.length === 0 && running(settled).length === 0 && settled.length > 0) {
    for (const index of plan.places) await placeItem(db, name, index);
    // The status follows the current file; a run that was ended from outside could not store its end.
    await endBatch(db, name, batchStatus("done", await batchFigures(db, name)));
    return { attached: false, begun: 0, completed: plan.completed };
  }
  await saveRows(services, request, plan);
  await startWorkflow(await readStarter(services), client, request);
  return { attached: false, begun: plan.starts.length, completed: plan.completed };
}

const completedOf = (rows: readonly ItemRow[]) => rows.filter(({ status }) => status === "completed").length;
const running = (rows: readonly ItemRow[]) =>
  rows.flatMap(({ status, sessionId }) => (status === "running" && sessionId !== null ? [sessionId] : []));

async function saveRows(
  services: Services,
  { name, items, concurrency, stopAfter, maxCostUsd, attempts }: BatchOrder,
  plan: ReturnType<typeof planBatch>,
): Promise<void> {
  const starts = new Map(items.map(({ id, start }) => [id, start]));
  const rows: NewItem[] = [];
  for (const { item, attempt: nextAttempt } of plan.starts) {
    const start = starts.get(item.id);
    if (start === undefined) continue;
    const attempt = await freeAttempt(services, name, item.id, nextAttempt);
    const sessionId = itemSessionId(name, item.id, attempt);
    const { workspace, ...parts } = await storedStart(services, sessionId, start);
    rows.push({
      itemId: item.id,
      ordinal: item.ordinal,
      digest: item.digest,
      sessionId,
      attempt,
      start: parts,
      workspace,
    });
  }
  const limits = { stopAfter: stopAfter ?? null, maxCostUsd: maxCostUsd ?? null, attempts: attempts ?? null };
  await services.store.db.transaction(async (tx) => {
    await openBatch(tx, { id: name, owner: services.user ?? null, concurrency, ...limits });
    for (const row of rows) await saveItem(tx, name, row);
    for (const index of plan.places) await placeItem(tx, name, index);
  });
}

/** The first attempt whose id nothing uses yet: a person, or an item of another batch, may have the same. */
async function freeAttempt(services: Services, name: string, item: string, from: number): Promise<number> {
  for (let attempt = from; ; attempt += 1) {
    const id = itemSessionId(name, item, attempt);
    if (!(await isTakenId(services.store.db, id, { batchId: name, itemId: item }))) return attempt;
  }
}

async function startWorkflow(
  { taskQueue, installation }: Starter,
  client: Client,
  { name, items, concurrency }: BatchOrder,
): Promise<void> {
  const workflowId = batchWorkflowId(name);
  await settled({
    make: async () => {
      try {
        await client.workflow.start(BATCH_WORKFLOW_TYPE, {
          workflowId,
          taskQueue,
          args: [{} satisfies SessionBatchInput],
          staticSummary: `batch ${name}: ${plural(items.length, "task")}, at most ${concurrency} at once`,
          memo: { installation } satisfies OwnerMemo,
        });
      } catch (error) {
        // Another client started the workflow first.
        if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
      }
      return true;
    },
    // One that began before has ended, or none would have been started.
    find: async () => (await describedRun(client, workflowId))?.status === "RUNNING" || undefined,
    what: `it started the batch ${name}`,
    again: `Start it again under the same name: what has begun does not begin twice. See it with: longhaul batch status ${shellWord(name)}`,
  });
}

const POLL_MS = 200;
/** How long to wait for a session's clean-up. */
const MAX_WAIT_MS = 60_000;

/** Whether the name belongs to a batch, and not to a session. */
export async function isBatch({ store: { db } }: Services, name: string): Promise<boolean> {
  const batch = await unlessTableMissing(() => findBatch(db, name));
  return batch !== undefined && (await findSessionRow(db, name)) === undefined;
}

/** @throws ClientError (impossible) if it is not running; (missing) if its sessions take longer than a minute to end */
export async function cancelBatch(services: Services, name: string): Promise<BatchDocument> {
  await requireAccess(services, batchWorkflowId(name));
  const client = await services.temporal.client();
  const handle = client.workflow.getHandle(batchWorkflowId(name));
  const wasRunning = await unlessGone(async () => {
    if ((await handle.describe()).status.name !== "RUNNING") return undefined;
    await handle.cancel();
    return true;
  });
  if (wasRunning === undefined)
    throw notPossible(
      `The batch ${name} is not running.`,
      `See what became of it: longhaul batch status ${shellWord(name)}`,
    );
  const isOver = async () => (await readBatch(services, name)).endedAt !== null;
  if (!(await until(isOver, MAX_WAIT_MS, POLL_MS)))
    throw missing(
      `${name} was asked to cancel, and not all of its sessions have ended within ${MAX_WAIT_MS / 1_000} s.`,
      `The request is kept. Check that a worker runs (longhaul doctor), then: longhaul batch status ${shellWord(name)}`,
    );
  return readBatch(services, name);
}
