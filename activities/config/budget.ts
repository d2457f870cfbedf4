/** How the window is divided: reserves, trigger, tail, prune. */
import type { PruneFirst, PruneFigures, Budget } from "../contract/budget.ts";

/** The requirement's own numbers. Source: requirement 4.3, OpenCode. */
export const ASKED_PRUNE: PruneFigures = { pruneProtectTokens: 40_000, pruneMinimumTokens: 20_000 };

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
  /** Default: never. */
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
    pruneFirst: options.pruneFirst ?? {},
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

/**
 * By window: up to so many tokens. An occasion that is missing means that the summary comes first, as in all larger windows.
 * Source: `npm run bench -- --only policies` and the same by every thousand tokens (decision 0026): where prune first costs at most
 * 2 % more and no fewer facts stay in view, it comes first. From 128,000 tokens on, at the trigger, it costs 6 to 34 % more and
 * hides up to 5 % of the facts.
 */
const PRUNE_FIRST: readonly (readonly [upToTokens: number, PruneFirst])[] = [
  [17_000, { trigger: 0.85, smaller: 0.7 }],
  [20_000, { trigger: 0.75, smaller: 0.7 }],
  [24_500, { trigger: 0.4, return: 1, smaller: 0.7 }],
  [26_000, { trigger: 0.6, smaller: 0.7 }],
  [33_000, { trigger: 0.65, return: 1 }],
  [62_000, { trigger: 0.5, return: 1 }],
];

export function pruneFirstFor(windowTokens: number): PruneFirst {
  return PRUNE_FIRST.find(([upTo]) => windowTokens <= upTo)?.[1] ?? {};
}
