/** What a compaction strategy is: the port behind which they are chosen by configuration. */
import type { StrategyName } from "../contract/strategies.ts";
import type { CompactionTrigger } from "../contract/activities.ts";
import type { Budget } from "../contract/budget.ts";
import type { StoredMessage } from "../contract/message.ts";
import type { RawAnswer, Rejection, SummaryCheck } from "./summary-check.ts";

export interface Strategy {
  readonly name: StrategyName;
  /** What starts it by itself; a manual compaction starts any. `ratio`: share of the usable window, 0–1. */
  readonly trigger: { readonly kind: "threshold"; readonly ratio: number } | { readonly kind: "overflow" };
  /**
   * One round: what is replaced, and by what. Changes nothing.
   * @throws whatever `summarise` throws, apart from a `SummariserOverflow`
   */
  compact(input: CompactionInput, summarise: Summarise): Promise<Compaction>;
  /** Why a summary may not take its place; undefined where it may. */
  validate(check: SummaryCheck): Rejection | undefined;
}

export interface CompactionInput {
  /** The view's rows in its order. */
  readonly rows: readonly StoredMessage[];
  readonly budget: Budget;
  readonly round: number;
  readonly trigger: CompactionTrigger;
  /** Estimated tokens of system prompt and tools. */
  readonly prefixTokens: number;
  /**
   * The whole request is to be at most this, in estimated tokens; else the tail goes, messages that stay are hidden, and
   * in the end the newest calls replaced too.
   */
  readonly targetTokens?: number | undefined;
  /** Window of the model that writes summaries, in tokens, by our count. */
  readonly summariserWindowTokens: number;
  /** Longest answer it gives, in tokens. Default a quarter of its window. */
  readonly summariserMaxOutput?: number | undefined;
  readonly focus?: string | undefined;
  /** `context.options` of the configuration. */
  readonly keepMessages?: number | undefined;
  readonly keepRatio?: number | undefined;
  readonly headMessages?: number | undefined;
  /** Go without a model. */
  readonly deterministic?: boolean | undefined;
}

export interface SummaryRequest {
  readonly system: string;
  readonly text: string;
  readonly maxOutputTokens: number;
  /** Estimated tokens of the request. */
  readonly tokens: number;
}

/** Asks a model for a summary. @throws SummariserOverflow where the request does not fit its window */
export type Summarise = (request: SummaryRequest) => Promise<RawAnswer>;

/** The request was too long for the summariser: the ladder's next rung is tried. */
export class SummariserOverflow extends Error {
  override readonly name = "SummariserOverflow";
}

/** What one rung of the ladder came to. */
export interface Attempt {
  readonly rung: "full" | "results-cut" | "oldest-dropped" | "deterministic";
  readonly requestTokens: number;
  /** `accepted`, `overflow`, or the reason of a refusal. */
  readonly outcome: string;
  readonly detail?: string;
}

export type Compaction =
  | {
      readonly kind: "compacted";
      readonly summary: string;
      readonly summaryTokens: number;
      /** Sequences of the rows that the summary replaces. */
      readonly replaced: readonly number[];
      /** Sequences of rows that stay and are hidden, as prune hides. */
      readonly hidden: readonly number[];
      /** Where the summary stands: right after the last row that it replaces. */
      readonly position: number;
      /** Estimated tokens of the whole request before and after. */
      readonly before: number;
      readonly after: number;
      readonly attempts: readonly Attempt[];
    }
  /** No summary, but what stays was too large and is hidden in part. */
  | {
      readonly kind: "pruned";
      readonly hidden: readonly number[];
      readonly before: number;
      readonly after: number;
    }
  | { readonly kind: "nothing"; readonly reason: string; readonly before: number }
  | {
      readonly kind: "failed";
      readonly reason: string;
      readonly before: number;
      readonly attempts: readonly Attempt[];
    };
