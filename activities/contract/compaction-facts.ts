/** The compaction and prune facts that the workflow and the activities exchange. Types only. */
import type { ContextSize } from "./context-size.ts";

export type CompactionTrigger = "threshold" | "overflow" | "manual";

export interface SummarizeInput {
  readonly step: number;
  readonly round: number;
  readonly trigger: CompactionTrigger;
  /** For a manual compaction: what the person wants kept in view. */
  readonly focus?: string;
  /** As in `ModelStepInput`: the view must fit that model's window. */
  readonly fallback?: number;
  /** Write the summary without a model: the last fallback, also used while the breaker is open. */
  readonly deterministic?: boolean;
}

export type CompactionFacts =
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

export interface PruneFacts {
  readonly pruned: number;
  readonly savedTokens: number;
  readonly context: ContextSize;
}
