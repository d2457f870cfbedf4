/** What a batch's workflow and its activities say to each other. Pure. */
import type { Precedence } from "./precedence.ts";

/** Name under which the workflow is registered. */
export const BATCH_WORKFLOW_TYPE = "sessionBatch";

/** No id of a session has a colon, so a batch and a session never want the same one. */
const PREFIX = "batch:";

export const batchWorkflowId = (name: string): string => `${PREFIX}${name}`;
export const batchOfWorkflow = (workflowId: string): string => workflowId.slice(PREFIX.length);

export interface LookAtBatchInput {
  /** Sessions that were begun, as far as their end was not seen. */
  readonly open: readonly string[];
  /** They are asked to cancel. */
  readonly cancel?: true;
}

export interface EndedItem {
  readonly sessionId: string;
  readonly status: "completed" | "failed" | "cancelled" | "max_steps";
  /** Type of the failure that ended it. */
  readonly failure?: string;
}

/** The states of a batch's items. */
export interface BatchFigures {
  readonly total: number;
  readonly completed: number;
  /** Ended, and not completed. */
  readonly failed: number;
  /** Of those that run: how many wait for a person. */
  readonly waits: number;
  readonly costUsd: number;
}

export interface BatchLook {
  readonly ended: readonly EndedItem[];
  readonly figures: BatchFigures;
  readonly concurrency: number;
  /** So many failures of one kind in a row end the batch. */
  readonly stopAfter?: number;
  readonly maxCostUsd?: number;
  /** Poll interval for ends that Temporal does not report. */
  readonly lookMs: number;
  /** Whether the namespace knows the search attribute `AgentBatch`. */
  readonly searchAttributes?: true;
}

interface TakeBatchItemsInput {
  /** The place of the last one that was taken; 0 at first. */
  readonly after: number;
  readonly count: number;
}

export interface TakenItem {
  readonly ordinal: number;
  readonly sessionId: string;
  /** The task on one line, bounded. */
  readonly about: string;
  /** Whose work goes first; absent means as others'. */
  readonly precedence?: Precedence;
  /** It has had a run already: it is followed, not started. */
  readonly begun?: true;
}

/** Why nothing more is started: all was, too many failed in the same way, the money is spent, a person said so. */
export type CloseReason = "done" | "failures" | "cost" | "cancelled";

interface CloseBatchInput {
  readonly reason: CloseReason;
}

/** What a batch's run returns, and what the Web UI shows as its result. */
export interface ClosedBatch extends BatchFigures {
  readonly status: "completed" | "failed" | "stopped" | "cancelled";
}

export interface BatchActivities {
  /** Stores the ends of items whose sessions have ended, and returns the batch's state. */
  lookAtBatch(input: LookAtBatchInput): Promise<BatchLook>;
  /** The next items, each with its session's row. */
  takeBatchItems(input: TakeBatchItemsInput): Promise<readonly TakenItem[]>;
  /** Writes how the batch ended. */
  closeBatch(input: CloseBatchInput): Promise<ClosedBatch>;
}
