/**
 * What hiding old results saves, in tokens of uncached input (decision 0026). Pure: the workflow uses it too.
 *
 * A hidden result is not billed again in later steps. But the prefix changes at that point, so everything behind it
 * is billed once in full. The freed room has a cost as well: the next compaction comes later, so the additional steps
 * run in a fuller window than they would after a compaction. Hiding pays off if those steps are cheaper than an
 * average step by more than the one full bill.
 */
import type { Budget } from "./budget.ts";

/** Prices of cached input and of output, relative to input. Source: the price lists of GPT-5 and, for the first, Claude. */
const CACHED_PRICE = 0.1;
const OUTPUT_PRICE = 8;
/** Cost of writing a summary: its length, and the share of the replaced text that the summariser reads. */
const SUMMARY_OUTPUT_TOKENS = 800;
const SUMMARISER_READS = 0.25;
/** System prompt and tools, as they are after a compaction. */
const PREFIX_TOKENS = 3_000;
/** Tokens per step if nothing has been measured. Source: the benchmark's tasks, 1,200–1,900. */
const USUAL_GROWTH_TOKENS = 1_400;

export interface PruneOffer {
  /** Tokens that would be hidden. */
  readonly savedTokens: number;
  /** Tokens of the kept messages after the first hidden one. */
  readonly behindTokens: number;
  /** Tokens of the current next request. */
  readonly usedTokens: number;
  /** Tokens by which the request grows per step. */
  readonly growthTokens?: number | undefined;
}

/** Tokens of uncached input saved until the next compaction; if negative, pruning does not pay off. */
export function pruneGain(offer: PruneOffer, budget: Budget): number {
  const { savedTokens, usedTokens } = offer;
  const growth = growthOf(offer);
  const stepsBought = savedTokens / growth;
  const theirPrice = CACHED_PRICE * (usedTokens - savedTokens / 2);
  return stepsBought * (averageStep(budget, growth) - theirPrice) - billedAgain(offer);
}

/**
 * Smallest number of tokens worth hiding at once: the batch size that minimises the combined cost of billing the rest
 * again and of carrying the results until then (the economic order quantity).
 */
export function pruneBatch(offer: PruneOffer, budget: Budget): number {
  return Math.max(
    budget.pruneMinimumTokens,
    Math.sqrt((2 * billedAgain(offer) * growthOf(offer)) / CACHED_PRICE),
  );
}

function billedAgain({ behindTokens }: PruneOffer): number {
  return (1 - CACHED_PRICE) * behindTokens;
}

/** Context and compaction of an average step from one round to the next, without the step's own new tokens. */
function averageStep(budget: Budget, growth: number): number {
  const { triggerTokens, summaryTokens, tailTokens, tailMessages } = budget;
  // After a round, the tail is ten messages (two make a step), or its limit in tokens.
  const tail = Math.min(tailTokens, (tailMessages / 2) * growth);
  const landing = Math.min(PREFIX_TOKENS + summaryTokens + tail, triggerTokens * 0.9);
  const replaced = triggerTokens - landing;
  const round =
    SUMMARISER_READS * replaced + OUTPUT_PRICE * SUMMARY_OUTPUT_TOKENS + (1 - CACHED_PRICE) * landing;
  return (CACHED_PRICE * (triggerTokens + landing)) / 2 + (round * growth) / replaced;
}

function growthOf({ growthTokens }: PruneOffer): number {
  return growthTokens !== undefined && growthTokens > 0 ? growthTokens : USUAL_GROWTH_TOKENS;
}
