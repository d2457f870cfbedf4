/**
 * Runs a file of tasks, some at a time: each is a session of its own, which continues whatever happens to this run. The workflow
 * holds ids and counters; how a session ended is read from Postgres.
 */
import {
  CancellationScope,
  ChildWorkflowCancellationType,
  ChildWorkflowFailure,
  condition,
  continueAsNew,
  isCancellation,
  ParentClosePolicy,
  setCurrentDetails,
  startChild,
  upsertSearchAttributes,
  workflowInfo,
} from "@temporalio/workflow";
import { WorkflowExecutionAlreadyStartedError } from "@temporalio/common";
import {
  batchOfWorkflow,
  type BatchLook,
  type ClosedBatch,
  type CloseReason,
  type TakenItem,
  batchLine,
  stopReason,
  streakAfter,
  type Streak,
} from "../activities/contract/batch.ts";
import { ownerMemo } from "../activities/contract/run-memo.ts";
import { WORKFLOW_TYPE } from "./messages.ts";
import { hasNewVersion, moveOn, ownVersion } from "./versions.ts";
import type { CodingAgentInput } from "./run-input.ts";
import { batchActivities, boundedSummary } from "./proxies.ts";

/** Carried from run to run of one batch. */
export interface SessionBatchInput {
  readonly open?: readonly string[];
  readonly after?: number;
  readonly streak?: Streak;
  /** The run continues as new beyond this many events. Absent means when Temporal suggests it. */
  readonly maxHistoryEvents?: number;
  /** The worker version that the previous run left for another one. */
  readonly leftVersion?: string;
}

/** Poll interval for sessions that were asked to cancel, in ms: a session that was reset closes without a report to us. */
const CANCELLING_LOOK_MS = 5_000;

interface Batch {
  readonly name: string;
  open: readonly string[];
  /** The index of the item that was taken last. */
  after: number;
  streak: Streak | undefined;
  /** No item is left to take. */
  isTaken: boolean;
  /** A session has closed since the last turn. */
  woken: boolean;
  /** The attempts that are not wanted any more were asked to end. */
  hasAsked: boolean;
}

/** One batch. The workflow's id is `batch:` and its name. */
export async function sessionBatch(input: SessionBatchInput = {}): Promise<ClosedBatch> {
  const { open = [], after = 0, streak, maxHistoryEvents, leftVersion } = input;
  const { workflowId, continuedFromExecutionRunId } = workflowInfo();
  const batch: Batch = {
    name: batchOfWorkflow(workflowId),
    open,
    after,
    streak,
    isTaken: false,
    woken: false,
    hasAsked: false,
  };
  try {
    for (let first = continuedFromExecutionRunId === undefined; ; first = false) {
      // A turn that has begun runs to its end: a cancel takes effect between turns.
      const turn = await CancellationScope.nonCancellable(() => takeTurn(batch, first));
      const { closeReason, chooses } = turn;
      if (closeReason !== undefined)
        return await CancellationScope.nonCancellable(() => closeWithBest(closeReason, chooses));
      const isNew = hasNewVersion(leftVersion);
      if (continueDue(maxHistoryEvents) || isNew) {
        const nextLeftVersion = isNew ? ownVersion() : leftVersion;
        const next: SessionBatchInput = {
          open: batch.open,
          after: batch.after,
          streak: batch.streak,
          maxHistoryEvents,
          leftVersion: nextLeftVersion,
        };
        return await (isNew ? moveOn<typeof sessionBatch>(next) : continueAsNew<typeof sessionBatch>(next));
      }
      await condition(() => batch.woken, turn.lookMs);
    }
  } catch (error) {
    if (!isCancellation(error)) throw error;
    await CancellationScope.nonCancellable(() => cancelOpen(batch));
    throw error;
  }
}

/** Checks on the sessions and fills the free places. @returns why nothing is left to do, or how long to wait */
async function takeTurn(
  batch: Batch,
  first: boolean,
): Promise<{ readonly closeReason?: CloseReason; readonly lookMs: number; readonly chooses: boolean }> {
  const report = await lookAt(batch);
  if (first && report.searchAttributes) upsertSearchAttributes({ AgentBatch: [batch.name] });
  const stopped = report.decided ? "decided" : stopReason(report, batch.streak);
  if (report.decided && batch.open.length > 0) {
    await lookAt(batch, batch.hasAsked ? undefined : true);
    batch.hasAsked = true;
  }
  const freeSlots = report.concurrency - batch.open.length;
  if (stopped === undefined && !batch.isTaken && freeSlots > 0) {
    const items = await batchActivities.takeBatchItems({ after: batch.after, count: freeSlots });
    batch.isTaken = items.length < freeSlots;
    for (const item of items) await begin(batch, item, report);
  }
  const isOver = batch.open.length === 0 && (batch.isTaken || stopped !== undefined);
  return {
    lookMs: batch.hasAsked ? CANCELLING_LOOK_MS : report.lookMs,
    closeReason: isOver ? (stopped ?? "done") : undefined,
    chooses: report.chooses === true,
  };
}

async function lookAt(batch: Batch, cancel?: true): Promise<BatchLook> {
  batch.woken = false;
  const report = await batchActivities.lookAtBatch({ open: batch.open, cancel });
  const ended = new Set(report.ended.map(({ sessionId }) => sessionId));
  batch.open = batch.open.filter((id) => !ended.has(id));
  batch.streak = streakAfter(report.ended, batch.streak, report.stopAfter);
  setCurrentDetails(
    [`**${batchLine(report.figures)}**`, "", ...batch.open.map((id) => `- \`${id}\` runs`)].join("\n"),
  );
  return report;
}

/** Starts the session of an item, or follows it if it was started before. */
async function begin(
  batch: Batch,
  { sessionId, ordinal, about, begun, precedence }: TakenItem,
  { searchAttributes }: BatchLook,
): Promise<void> {
  batch.open = [...batch.open, sessionId];
  batch.after = ordinal;
  // Its end is not reported to this run, and may have come already.
  if (begun) return void (batch.woken = true);
  try {
    const child = await startChild(WORKFLOW_TYPE, {
      ...ofOwnLife(sessionId),
      args: [{}],
      staticSummary: boundedSummary(about),
      priority: precedence,
      searchAttributes: searchAttributes ? { AgentBatch: [batch.name] } : undefined,
    });
    const wake = () => void (batch.woken = true);
    child.result().then(wake, wake);
  } catch (error) {
    // The batch's previous run started it just now; polling finds its end.
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
  }
}

/** However this run ends, the sessions continue; only a cancel ends them. */
const ofOwnLife = (sessionId: string) => ({
  workflowId: sessionId,
  parentClosePolicy: ParentClosePolicy.ABANDON,
  cancellationType: ChildWorkflowCancellationType.ABANDON,
  memo: ownerMemo(workflowInfo().memo),
});

async function cancelOpen(batch: Batch): Promise<void> {
  for (let hasAsked = false; batch.open.length > 0; hasAsked = true) {
    await lookAt(batch, hasAsked ? undefined : true);
    if (batch.open.length > 0) await condition(() => batch.woken, CANCELLING_LOOK_MS);
  }
  await close("cancelled");
}

/** If its items are attempts at one task, the best is chosen and delivered before the batch ends. */
async function closeWithBest(reason: CloseReason, chooses: boolean): Promise<ClosedBatch> {
  const isDelivered = !chooses || (await deliverBest());
  return close(reason, isDelivered ? undefined : true);
}

/** @returns false if its session did not do so: no other attempt is delivered in its place without a person */
async function deliverBest(): Promise<boolean> {
  const best = await batchActivities.chooseAttempt();
  if (best === undefined) return true;
  const { sessionId, deliver } = best;
  try {
    const child = await startChild(WORKFLOW_TYPE, {
      ...ofOwnLife(sessionId),
      args: [{ deliver } satisfies CodingAgentInput],
      staticSummary: "the best attempt is delivered",
    });
    await child.result();
    return true;
  } catch (error) {
    // A person's message has started it again, or it failed as its own history says.
    if (error instanceof WorkflowExecutionAlreadyStartedError || error instanceof ChildWorkflowFailure)
      return false;
    throw error;
  }
}

async function close(reason: CloseReason, undelivered?: true): Promise<ClosedBatch> {
  const closed = await CancellationScope.nonCancellable(() =>
    batchActivities.closeBatch({ reason, undelivered }),
  );
  setCurrentDetails(`**${batchLine(closed)}** · ${closed.status}`);
  return closed;
}

function continueDue(maxEvents: number | undefined): boolean {
  const { continueAsNewSuggested, historyLength } = workflowInfo();
  return continueAsNewSuggested || (maxEvents !== undefined && historyLength > maxEvents);
}
