/** A compaction's input, its request to a model, and its result. Types, apart from one error. */
import type { CompactionTrigger } from "../contract/activities.ts";
import type { Budget } from "../contract/budget.ts";
import type { StoredMessage } from "../contract/message.ts";
import type { RawAnswer } from "./summary-check.ts";

/** `context.options` of the configuration, which override a strategy's own figures. */
export interface KeepOptions {
  readonly keepMessages?: number | undefined;
  readonly keepRatio?: number | undefined;
  readonly headMessages?: number | undefined;
  readonly preserveLastNTurns?: number | undefined;
}

export interface CompactionInput {
  /** The view's rows, in view order. */
  readonly rows: readonly StoredMessage[];
  readonly budget: Budget;
  readonly round: number;
  readonly trigger: CompactionTrigger;
  /** Estimated tokens of system prompt and tools. */
  readonly prefixTokens: number;
  /**
   * Largest request that may remain, in estimated tokens. To reach it, first the tail is replaced too, then kept messages
   * are hidden, and finally the newest calls are replaced.
   */
  readonly targetTokens?: number | undefined;
  /** Window of the model that writes summaries, in tokens by our count. */
  readonly summariserRoomTokens: number;
  /** Longest answer of that model, in tokens. Default: a quarter of its window. */
  readonly summariserMaxOutput?: number | undefined;
  readonly focus?: string | undefined;
  readonly options?: KeepOptions | undefined;
  /** Write the summary without a model. */
  readonly deterministic?: boolean | undefined;
}

export interface SummaryRequest {
  readonly system: string;
  readonly text: string;
  readonly maxOutputTokens: number;
  /** Estimated tokens of the request. */
  readonly tokens: number;
}

/** Asks a model for a summary. @throws SummariserOverflow if the request does not fit its window */
export type Summarise = (request: SummaryRequest) => Promise<RawAnswer>;

/** The request was too long for the summariser: the next fallback is tried. */
export class SummariserOverflow extends Error {
  override readonly name = "SummariserOverflow";
}

/** One attempt at a summary. `rung` is the fallback that was tried: the name is stored. */
export interface Attempt {
  readonly rung: "full" | "results-cut" | "oldest-dropped" | "deterministic";
  readonly requestTokens: number;
  /** `accepted`, `overflow`, or the reason why the summary was refused. */
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
      /** Sequences of rows that stay but are hidden, as prune hides rows. */
      readonly hidden: readonly number[];
      /** The summary's position: right after the last row that it replaces. */
      readonly position: number;
      /** Estimated tokens of the whole request before and after. */
      readonly before: number;
      readonly after: number;
      readonly attempts: readonly Attempt[];
    }
  /** No summary, but some of the kept rows were too large and are hidden. */
  | {
      readonly kind: "pruned";
      readonly hidden: readonly number[];
      readonly before: number;
      readonly after: number;
      /** Set if a summary was tried and failed. */
      readonly failed?: Extract<Compaction, { readonly kind: "failed" }>;
    }
  | { readonly kind: "nothing"; readonly reason: string; readonly before: number }
  | {
      readonly kind: "failed";
      readonly reason: string;
      readonly before: number;
      readonly attempts: readonly Attempt[];
    };
