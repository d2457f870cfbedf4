/**
 * What hiding old results gains, in tokens of uncached input (decision 0026). Pure: the workflow asks, too.
 *
 * A hidden result is not billed again in the steps to come. But the prefix changes from there on, so what stands behind
 * it is billed once in full. And the room it makes is not filled for nothing: the next compaction comes later, so the
 * steps that are bought run in a fuller window than those after a compaction would. Hiding pays if the steps bought
 * are cheaper than a step is on average, by more than the one bill in full.
 */
import type { Budget } from "./budget.ts";

/** Price of cached input and of output, in input's. Source: the price lists of GPT-5 and, for the first, Claude. */
const CACHED_PRICE = 0.1;
const OUTPUT_PRICE = 8;
/** What a summary costs to write: its length, and the share of what it replaces that the summariser reads. */
const SUMMARY_OUTPUT_TOKENS = 800;
const SUMMARISER_READS = 0.25;
/** System prompt and tools, as after a compaction. */
const PREFIX_TOKENS = 3_000;
/** Tokens a step if nothing is measured. Source: the benchmark's tasks, 1,200–1,900. */
const USUAL_GROWTH_TOKENS = 1_400;

export interface PruneOffer {
  /** Tokens that would be hidden. */
  readonly savedTokens: number;
  /** Tokens of the kept messages after the first hidden one. */
  readonly behindTokens: number;
  /** Tokens of the current next request. */
  readonly usedTokens: number;
  /** Tokens by which the request grows a step. */
  readonly growthTokens?: number | undefined;
}

/** Tokens of uncached input saved until the next compaction; below 0, pruning does not pay. */
export function pruneGain(offer: PruneOffer, budget: Budget): number {
  const { savedTokens, usedTokens } = offer;
  const growth = growthOf(offer);
  const stepsBought = savedTokens / growth;
  const theirPrice = CACHED_PRICE * (usedTokens - savedTokens / 2);
  return stepsBought * (averageStep(budget, growth) - theirPrice) - billedAnew(offer);
}

/**
 * Least tokens worth hiding at once: the batch at which billing the rest again and carrying the results until then cost
 * the least together (the economic order quantity).
 */
export function pruneBatch(offer: PruneOffer, budget: Budget): number {
  return Math.max(
    budget.pruneMinimumTokens,
    Math.sqrt((2 * billedAnew(offer) * growthOf(offer)) / CACHED_PRICE),
  );
}

function billedAnew({ behindTokens }: PruneOffer): number {
  return (1 - CACHED_PRICE) * behindTokens;
}

/** Context and compaction of an average step from one round to the next, without the step's own new tokens. */
function averageStep(budget: Budget, growth: number): number {
  const { triggerTokens, summaryTokens, tailTokens, tailMessages } = budget;
  // After a round: the tail is ten messages, of which two make a step, or its tokens.
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
