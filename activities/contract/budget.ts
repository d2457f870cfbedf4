/** How the window is divided: reserves, trigger, tail, prune. Pure: no clock, no I/O. */

/**
 * Why the next request must become smaller: it has reached the trigger, the session is resumed after its provider's cache has
 * expired, or the request goes to another model, whose window is smaller.
 */
export type Occasion = "trigger" | "return" | "smaller";

/**
 * The occasions on which hiding old results comes before a summary. The number is the largest share of the trigger that may be
 * left after that: a request that stays larger soon needs a summary all the same, and has been billed in full twice.
 */
export type PruneFirst = Readonly<Partial<Record<Occasion, number>>>;

/** In tokens. */
export interface PruneFigures {
  /** The newest tool results that prune leaves alone. */
  readonly pruneProtectTokens: number;
  /** The least that it hides at once. */
  readonly pruneMinimumTokens: number;
}

/** The requirement's own numbers. Source: requirement 4.3, OpenCode. */
export const ASKED_PRUNE: PruneFigures = { pruneProtectTokens: 40_000, pruneMinimumTokens: 20_000 };

/** Figures that apply to one model, all in tokens of the full request (system + tools + messages). */
export interface Budget extends PruneFigures {
  readonly windowTokens: number;
  /** Room kept free for the answer. */
  readonly outputTokens: number;
  /** Compaction starts at this size. */
  readonly triggerTokens: number;
  /** Size at which a session resumed with an expired cache is compacted; undefined: at the trigger. */
  readonly returnTokens?: number;
  /** No request larger than this is sent. */
  readonly limitTokens: number;
  /** Most tokens of the newest messages that compaction leaves alone. */
  readonly tailTokens: number;
  readonly tailMessages: number;
  /** Most tokens of user messages kept verbatim besides a summary. */
  readonly userTokens: number;
  readonly summaryTokens: number;
  /**
   * When hiding old results comes before a summary; empty: never. Absent in runs older than this rule, which do not count
   * messages before they are delivered either.
   */
  readonly pruneFirst?: PruneFirst;
}

/** From this size on, windows use the requirements' absolute numbers; smaller windows scale them down in proportion. */
const FULL_WINDOW_TOKENS = 128_000;

const SYSTEM_RESERVE = 2_000;
const OUTPUT_RESERVE = 4_000;
const SAFETY_RESERVE = 5_000;

export interface BudgetOptions {
  /**
   * Share of the usable window at which compaction starts, 0–1; `limit`: at the largest request that is sent. Source:
   * requirement D4, 0.8.
   */
  readonly triggerRatio: number | "limit";
  /** The same for a session that is resumed after its provider's cache has expired (decision 0034). */
  readonly returnRatio?: number;
  /** The ratios apply to this many tokens of the usable window, if that is less than the whole. */
  readonly triggerOfTokens?: number | undefined;
  readonly returnOfTokens?: number | undefined;
  /** Measured tokens of system prompt and tools; used if larger than the reserve. */
  readonly prefixTokens?: number;
  /** Longest answer to ask for, in tokens. */
  readonly maxOutputTokens?: number;
  /** Largest request that the model accepts, if that is less than its window. */
  readonly maxInputTokens?: number;
  readonly tailMessages?: number;
  /** Default: what the window scales them to. */
  readonly prune?: PruneFigures;
  readonly pruneFirst?: PruneFirst;
}

/**
 * The figures in force for a window.
 * Source: requirement 4 (128k figures; reserves ≤ 20 % of the window, tail ≤ 25 %, user messages ≤ 15 %,
 * prune's protect ≤ 30 % and minimum ≤ 15 %; 20 % is protected, as with more nothing can be hidden in small windows).
 */
export function budgetFor(windowTokens: number, options: BudgetOptions): Budget {
  const share = (ratio: number, full: number) =>
    windowTokens >= FULL_WINDOW_TOKENS ? full : Math.floor(Math.min(full, ratio * windowTokens));
  const prefix = Math.max(SYSTEM_RESERVE, options.prefixTokens ?? 0);
  const reserves = share(0.2, prefix + OUTPUT_RESERVE + SAFETY_RESERVE);
  const output = Math.min(share(0.08, OUTPUT_RESERVE), options.maxOutputTokens ?? OUTPUT_RESERVE);
  const { maxInputTokens: maxInput = Infinity } = options;
  const safety = share(0.08, SAFETY_RESERVE);
  const usable = Math.min(windowTokens - reserves, maxInput - safety);
  const limitTokens = Math.min(windowTokens - output, maxInput);
  return {
    windowTokens,
    outputTokens: output,
    triggerTokens:
      options.triggerRatio === "limit"
        ? limitTokens
        : Math.floor(Math.min(usable, options.triggerOfTokens ?? usable) * options.triggerRatio),
    ...(options.returnRatio === undefined
      ? {}
      : {
          returnTokens: Math.floor(Math.min(usable, options.returnOfTokens ?? usable) * options.returnRatio),
        }),
    limitTokens,
    tailTokens: share(0.25, 20_000),
    tailMessages: options.tailMessages ?? 10,
    userTokens: share(0.15, 20_000),
    summaryTokens: share(0.1, 4_096),
    ...(options.prune ?? scaledPrune(windowTokens)),
    ...(options.pruneFirst === undefined ? {} : { pruneFirst: options.pruneFirst }),
  };
}

/** The figures of prune within a window, so that it can act before a summary in a small one too. */
export function scaledPrune(windowTokens: number): PruneFigures {
  if (windowTokens >= FULL_WINDOW_TOKENS) return ASKED_PRUNE;
  const scaled = (share: number, full: number) => Math.floor(Math.min(full, share * windowTokens));
  return {
    pruneProtectTokens: scaled(0.2, ASKED_PRUNE.pruneProtectTokens),
    pruneMinimumTokens: scaled(0.15, ASKED_PRUNE.pruneMinimumTokens),
  };
}

/** Share of a request by which its size may be underestimated. Source: requirement 9, p95 of the estimate's error 3 %. */
const ESTIMATE_ERROR = 0.05;

/**
 * Longest answer to ask for, in tokens: servers refuse a request whose input plus longest answer exceeds the window.
 * Never less than what the budget reserves for the answer.
 */
export function answerTokens(budget: Budget, maxOutputTokens: number, usedTokens: number): number {
  const free = budget.windowTokens - Math.ceil(usedTokens * (1 + ESTIMATE_ERROR));
  return Math.min(maxOutputTokens, Math.max(budget.outputTokens, free));
}
