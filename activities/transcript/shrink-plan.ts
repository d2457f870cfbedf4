/**
 * What is hidden if even the messages that stay are too large for the window: a huge result of the newest calls, a
 * huge message of a person. Rows are only marked, as prune does; what is hidden can be read again. Pure.
 */
import type { StoredMessage } from "../contract/message.ts";
import { tokensSaved } from "./view.ts";

export interface ShrinkPlan {
  /** Sequences of the rows to mark, in order. */
  readonly sequences: readonly number[];
  readonly savedTokens: number;
}

/**
 * The largest first, and no more of them than it takes to save `excessTokens`; everything that can be hidden if that
 * is not enough. Rows that would save too little stay as they are.
 */
export function planShrink(rows: readonly StoredMessage[], excessTokens: number): ShrinkPlan {
  const gains = rows
    .map((row) => ({ row, saved: tokensSaved(row) }))
    .filter(({ saved }) => saved >= MIN_GAIN_TOKENS)
    .toSorted((a, b) => b.saved - a.saved);
  const sequences: number[] = [];
  let savedTokens = 0;
  for (const { row, saved } of gains) {
    if (savedTokens >= excessTokens) break;
    sequences.push(row.sequence);
    savedTokens += saved;
  }
  return { sequences: sequences.toSorted((a, b) => a - b), savedTokens };
}

/** Below this a placeholder saves too little. */
const MIN_GAIN_TOKENS = 64;
