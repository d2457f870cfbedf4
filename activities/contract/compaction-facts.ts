/** The compaction and prune facts that the workflow and the activities exchange. Types only. */
import type { ContextSize } from "./context-size.ts";
import type { Guidance } from "./guidance.ts";

export type CompactionTrigger = "threshold" | "overflow" | "manual";

/** The messages that were drained before a compaction: it delivers them first, so that they are in the view. */
export interface DrainedInput {
  readonly guidance?: readonly Guidance[];
  /** True while messages parked in Postgres wait: they are delivered before `guidance`. */
  readonly parked?: boolean;
}

/** What became of them. Absent in the results of workers that delivered messages with the model step alone. */
export interface DeliveredFacts {
  readonly delivered?: true;
  /** Messages left waiting in Postgres for the next step: there were more than one step takes. */
  readonly parked?: number;
}

export interface SummarizeInput extends DrainedInput {
  readonly step: number;
  readonly round: number;
  readonly trigger: CompactionTrigger;
  /** For a manual compaction: what the person wants kept in view. */
  readonly focus?: string;
  /** As in `ModelStepInput`: the view must fit that model's window. */
  readonly fallback?: number;
  /** Write the summary without a model: the last fallback, also used while the breaker is open. */
  readonly deterministic?: boolean;
  /** The run itself waits for a limit's end, so that is returned as an outcome. */
  readonly waitsForLimits?: true;
}

export type CompactionFacts = DeliveredFacts & CompactionOutcome;

export type CompactionOutcome =
  | {
      readonly kind: "compacted";
      readonly round: number;
      readonly before: number;
      readonly after: number;
      readonly context: ContextSize;
    }
  /** Nothing was replaced, but results or messages too large for the window were hidden. */
  | { readonly kind: "pruned"; readonly hidden: number; readonly context: ContextSize }
  /** There was nothing to replace. */
  | { readonly kind: "nothing"; readonly reason: string; readonly context: ContextSize }
  /** The model's limit is used up, and its provider said when it ends. Nothing was stored. */
  | { readonly kind: "limited"; readonly waitMs: number; readonly context: ContextSize }
  /** Every fallback failed; history is unchanged. */
  | { readonly kind: "failed"; readonly reason: string; readonly context: ContextSize };

export interface UndoCompactionInput {
  readonly step: number;
  /** Id of the person's request: one id undoes one round, however often it is sent. */
  readonly requestId: string;
}

export type UndoneFacts =
  | { readonly kind: "undone"; readonly round: number; readonly context: ContextSize }
  | { readonly kind: "nothing"; readonly reason: string; readonly context: ContextSize };

export interface PruneInput extends DrainedInput {
  /** The last finished step. */
  readonly step: number;
}

export interface PruneFacts extends DeliveredFacts {
  readonly pruned: number;
  readonly savedTokens: number;
  readonly context: ContextSize;
}
