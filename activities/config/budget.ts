/** How a model's context window is divided: reserves, trigger, tail, prune; and all else that is measured by it. */
import type { PruneFirst, PruneFigures, Budget } from "../contract/budget.ts";
import type { RunConfig } from "./agent-config.ts";
import type { ModelTarget } from "./model-target.ts";
import { strategies, type StrategyTrigger } from "./strategies.ts";

/** The requirement's own numbers. Source: requirement 4.3, OpenCode. */
const ASKED_PRUNE: PruneFigures = { pruneProtectTokens: 40_000, pruneMinimumTokens: 20_000 };

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
export function budgetFor(contextWindow: number, options: BudgetOptions): Budget {
  const share = (ratio: number, full: number) =>
    contextWindow >= FULL_WINDOW_TOKENS ? full : Math.floor(Math.min(full, ratio * contextWindow));
  const prefix = Math.max(SYSTEM_RESERVE, options.prefixTokens ?? 0);
  const reserves = share(0.2, prefix + OUTPUT_RESERVE + SAFETY_RESERVE);
  const output = Math.min(share(0.08, OUTPUT_RESERVE), options.maxOutputTokens ?? OUTPUT_RESERVE);
  const { maxInputTokens: maxInput = Infinity } = options;
  const safety = share(0.08, SAFETY_RESERVE);
  const usable = Math.min(contextWindow - reserves, maxInput - safety);
  const limitTokens = Math.min(contextWindow - output, maxInput);
  return {
    contextWindow,
    outputTokens: output,
    triggerTokens:
      options.triggerRatio === "limit"
        ? limitTokens
        : Math.floor(Math.min(usable, options.triggerOfTokens ?? usable) * options.triggerRatio),
    returnTokens:
      options.returnRatio === undefined
        ? undefined
        : Math.floor(Math.min(usable, options.returnOfTokens ?? usable) * options.returnRatio),
    limitTokens,
    tailTokens: share(0.25, 20_000),
    tailMessages: options.tailMessages ?? 10,
    userTokens: share(0.15, 20_000),
    summaryTokens: share(0.1, 4_096),
    ...(options.prune ?? scaledPrune(contextWindow)),
    pruneFirst: options.pruneFirst ?? {},
  };
}

/** The figures of prune within a window, so that it can act before a summary in a small one too. */
function scaledPrune(contextWindow: number): PruneFigures {
  if (contextWindow >= FULL_WINDOW_TOKENS) return ASKED_PRUNE;
  const scaled = (share: number, full: number) => Math.floor(Math.min(full, share * contextWindow));
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
  const free = budget.contextWindow - Math.ceil(usedTokens * (1 + ESTIMATE_ERROR));
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

export function pruneFirstFor(contextWindow: number): PruneFirst {
  return PRUNE_FIRST.find(([upTo]) => contextWindow <= upTo)?.[1] ?? {};
}

/**
 * Share of the usable window at which a session resumed with an expired cache is compacted: for small windows, where
 * a round forgets more, and for those from 128,000 tokens on. Source: measured on a recorded session (decision 0034).
 */
const RETURN_TRIGGER = { small: 0.4, large: 0.25 };
const LARGE_WINDOW_TOKENS = 128_000;

/**
 * Most tokens of the usable window that the trigger's share refers to, unless a share is configured: in a larger
 * window each step would pay for tokens that it hardly needs. Source: measured on the same session (decision 0034).
 */
const ECONOMIC_TOKENS = 200_000;

/**
 * Budget of the run's model.
 * @param prefixTokens measured size of system prompt and tools
 * @param contextWindow the window that the model's server names, in place of the session's
 */
export function calculateBudget(
  config: RunConfig,
  prefixTokens: number,
  contextWindow: number = config.contextWindow,
): Budget {
  const { options } = config.context;
  const trigger = triggerOf(config);
  const { small, large } = RETURN_TRIGGER;
  const usual = contextWindow < LARGE_WINDOW_TOKENS ? small : large;
  // A session that compacts only on a person's request, or on an overflow, does not compact on resume either.
  const returnRatio = options.returnTrigger ?? (typeof trigger === "number" ? usual : undefined);
  const isConfigured = (options.trigger ?? config.headroom) !== undefined || typeof trigger !== "number";
  return budgetFor(contextWindow, {
    triggerRatio: typeof trigger === "number" ? trigger : "limit",
    returnRatio,
    triggerOfTokens: isConfigured ? undefined : ECONOMIC_TOKENS,
    returnOfTokens: options.returnTrigger === undefined ? ECONOMIC_TOKENS : undefined,
    prefixTokens,
    maxOutputTokens: config.maxOutput,
    maxInputTokens: config.maxInput,
    tailMessages: options.keepMessages,
    prune: calculatePruneFigures(config, contextWindow),
    pruneFirst: pruneModeOf(config) === "auto" ? pruneFirstFor(contextWindow) : {},
  });
}

/**
 * What prune protects and the least it hides: as configured. Otherwise `always`, the rule that was asked for, has the requirement's
 * numbers in every window; a prune before a summary scales them to a small one.
 */
export function calculatePruneFigures(
  config: RunConfig,
  contextWindow: number = config.contextWindow,
): PruneFigures {
  const { pruneProtect, pruneMinimum } = config.context.options;
  const usual = pruneModeOf(config) === "each-step" ? ASKED_PRUNE : scaledPrune(contextWindow);
  return {
    pruneProtectTokens: pruneProtect ?? usual.pruneProtectTokens,
    pruneMinimumTokens: pruneMinimum ?? usual.pruneMinimumTokens,
  };
}

/** When old results are hidden in this run. */
export function pruneModeOf({ context }: RunConfig): "auto" | "each-step" | "never" {
  const { prune = "auto" } = context.options;
  return prune === "always" ? "each-step" : prune;
}

/** What starts a compaction in this run: as configured, otherwise the strategy's trigger. */
export function triggerOf({ context, headroom }: RunConfig): StrategyTrigger {
  if (context.options.auto === false) return "manual";
  return context.options.trigger ?? headroom ?? strategies[context.strategy].trigger;
}

/** Share for names and descriptions of skills. Chosen: so that many skills cost little. */
const SKILLS_SHARE = 0.02;
/** Share above which MCP servers' descriptions move behind a search. Chosen: people report servers that fill half of it. */
const SERVER_TOOLS_SHARE = 0.1;
/** Above this share, by our count, an empty refusal means that the request does not fit. Chosen: our count is an estimate. */
const NEARLY_FULL_SHARE = 0.8;
/** Usage of more than this many windows is a sum over many calls, not one request. */
const SUMMED_WINDOWS = 4;
/** Above this many windows the figure is nonsense: providers report absurd ones, too. Chosen by judgement: far above any true bill. */
const ABSURD_WINDOWS = 10;

/** What has a window: a model, and the configuration of a run with it. */
export type Windowed = Pick<ModelTarget, "contextWindow">;

/** What is measured by a model's window apart from its budget, in tokens. */
export interface WindowMeasures {
  /** Most for names and descriptions of skills. */
  readonly skillsTokens: number;
  /** Most for the descriptions of MCP servers' tools; beyond it tools are found by search. */
  readonly serverToolsTokens: number;
  /** From this size on, a refusal may mean that the request did not fit. */
  readonly nearlyFullTokens: number;
  /** Most that the usage of one request can be. */
  readonly oneRequestTokens: number;
  /** Most that reported usage can be at all. */
  readonly usageTokens: number;
}

/** @param model without a window nothing fits */
export function windowMeasures({ contextWindow = 0 }: Partial<Windowed>): WindowMeasures {
  return {
    skillsTokens: Math.floor(contextWindow * SKILLS_SHARE),
    serverToolsTokens: contextWindow * SERVER_TOOLS_SHARE,
    nearlyFullTokens: contextWindow * NEARLY_FULL_SHARE,
    oneRequestTokens: contextWindow * SUMMED_WINDOWS,
    usageTokens: contextWindow * ABSURD_WINDOWS,
  };
}
