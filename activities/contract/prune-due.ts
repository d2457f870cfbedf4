/** When old tool results are hidden (requirement 4.3). Pure: the workflow calls it with the numbers that it has. */
import type { Budget } from "./budget.ts";
import { pruneBatch, pruneGain, type PruneOffer } from "./prune-balance.ts";

export interface PruneNumbers extends Pick<PruneOffer, "usedTokens" | "growthTokens"> {
  /** Tokens of tool results that prune could hide, including the protected ones: see `prunableTokens`. */
  readonly prunableTokens: number;
}

/**
 * `auto`: if hiding pays off. `always`: near the compaction trigger, which it postpones; messages stay verbatim for
 * longer, and a step costs more. `never`: only compaction makes room.
 */
export type PruneMode = "auto" | "always" | "never";

/** Share of the compaction trigger from which `always` applies. */
const NEAR_TRIGGER = 0.9;

/** Whether to hide old results now: enough of them beyond the protected ones, and the mode's own condition holds. */
export function pruneDue(
  { prunableTokens: prunable, ...numbers }: PruneNumbers,
  budget: Budget,
  mode: PruneMode = "auto",
): boolean {
  const savedTokens = prunable - budget.pruneProtectTokens;
  if (mode === "never" || savedTokens < budget.pruneMinimumTokens) return false;
  if (mode === "always") return numbers.usedTokens >= budget.triggerTokens * NEAR_TRIGGER;
  // Everything kept comes after the first hidden result, except the task and the prefix.
  const offer = { ...numbers, savedTokens, behindTokens: numbers.usedTokens - savedTokens };
  return savedTokens >= pruneBatch(offer, budget) && pruneGain(offer, budget) > 0;
}
