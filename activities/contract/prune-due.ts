/** When old tool results are hidden (requirement 4.3). Pure: the workflow calls it with the numbers that it has. */
import type { Budget, Occasion, PruneFirst } from "./budget.ts";

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

export interface PruneNumbers {
  /** Tokens of the next request. */
  readonly usedTokens: number;
  /** Tokens of tool results that prune could hide, including the protected ones: see `prunableTokens`. */
  readonly prunableTokens: number;
}

/** Whether hiding old results comes before a summary, on an occasion whose trigger the request has reached. */
export function prunesFirst(
  { usedTokens, prunableTokens }: PruneNumbers,
  occasion: Occasion,
  { budget, triggerTokens }: { readonly budget: Budget; readonly triggerTokens: number },
): boolean {
  const share = budget.pruneFirst?.[occasion];
  const savedTokens = prunableTokens - budget.pruneProtectTokens;
  if (share === undefined || savedTokens < budget.pruneMinimumTokens) return false;
  const left = usedTokens - savedTokens;
  return left < triggerTokens && left <= triggerTokens * share;
}

/** Share of the trigger from which results were hidden in runs older than `each-step`. */
const NEAR_TRIGGER = 0.9;

/**
 * Whether to hide old results after a step: `each-step` as soon as enough can be hidden. Runs that were recorded before there
 * was such a mode have `always` or none, and hid them near the trigger. No other mode hides anything after a step.
 */
export function pruneDue(
  { usedTokens, prunableTokens }: PruneNumbers,
  { pruneProtectTokens, pruneMinimumTokens, triggerTokens }: Budget,
  mode: string | undefined,
): boolean {
  if (prunableTokens - pruneProtectTokens < pruneMinimumTokens) return false;
  if (mode === "each-step") return true;
  return (mode === undefined || mode === "always") && usedTokens >= triggerTokens * NEAR_TRIGGER;
}
