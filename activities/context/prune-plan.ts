/**
 * Which old tool results may be hidden, and when that pays (requirement 4.3). Pure: the workflow asks `pruneDue`.
 *
 * Hiding a result changes the prefix from there on: the provider's cache is lost behind it, and the next request is
 * billed in full (cached input costs a tenth). So it is done in batches, and only where the cache is about to be lost
 * anyway: near the compaction trigger, which a prune then puts off, or when the cache is cold.
 */
import type { Budget } from "./budget.ts";
import type { StoredMessage } from "./message.ts";
import { shownTokens } from "./view.ts";

/** Share of the compaction trigger from which a prune pays. */
const NEAR_TRIGGER = 0.9;
/** Results that stay readable: small, and the model steers by them. */
const PROTECTED_TOOLS: ReadonlySet<string> = new Set(["todo", "ask_user"]);
/** User turns whose results are spared longer. Source: OpenCode. */
const PROTECTED_TURNS = 2;
/** A result this small gains nothing by a placeholder with its handle. */
const PLACEHOLDER_TOKENS = 32;

export interface PruneNumbers {
  /** Tokens of the next request. */
  readonly usedTokens: number;
  /** Tokens of tool results that are not hidden yet. */
  readonly prunableTokens: number;
  /** True where the provider's cache is gone anyway, as after a long wait. */
  readonly cold?: boolean;
}

/** Whether to hide old results now: enough of them beyond the protected ones, and a cache that is soon lost. */
export function pruneDue(numbers: PruneNumbers, budget: Budget): boolean {
  const enough = numbers.prunableTokens - budget.pruneProtectTokens >= budget.pruneMinimumTokens;
  return enough && (numbers.cold === true || numbers.usedTokens >= budget.triggerTokens * NEAR_TRIGGER);
}

export interface PrunePlan {
  /** Sequences of the rows to mark; empty where it does not pay. */
  readonly sequences: readonly number[];
  readonly savedTokens: number;
}

/**
 * Old results to hide, walking back from the newest to the last summary. The newest `pruneProtectTokens` of results
 * stay. Results of the last two user turns stay up to twice that: in a long run with a single user message the turn
 * is the whole run, and sparing all of it would leave nothing to hide.
 */
export function planPrune(
  rows: readonly StoredMessage[],
  budget: Pick<Budget, "pruneProtectTokens" | "pruneMinimumTokens">,
): PrunePlan {
  const sequences: number[] = [];
  let savedTokens = 0;
  let seenTokens = 0;
  let turns = 0;
  for (const row of rows.toReversed()) {
    if (row.kind === "summary") break;
    if (row.kind === "task" || row.kind === "guidance") turns++;
    if (row.role !== "tool" || row.prunedStep !== undefined) continue;
    seenTokens += row.tokens;
    const spared = turns < PROTECTED_TURNS ? 2 * budget.pruneProtectTokens : budget.pruneProtectTokens;
    if (seenTokens <= spared || !isPrunable(row)) continue;
    sequences.push(row.sequence);
    savedTokens += row.tokens - shownTokens({ ...row, prunedStep: row.step });
  }
  return savedTokens >= budget.pruneMinimumTokens
    ? { sequences: sequences.toReversed(), savedTokens }
    : { sequences: [], savedTokens: 0 };
}

/** Tokens of the results that a prune could ever hide: what `pruneDue` is asked with. */
export function prunableTokens(rows: readonly StoredMessage[]): number {
  const summary = rows.findLastIndex((row) => row.kind === "summary");
  return rows.slice(summary + 1).reduce((sum, row) => sum + (isPrunable(row) ? row.tokens : 0), 0);
}

function isPrunable(row: StoredMessage): boolean {
  return (
    row.role === "tool" &&
    row.prunedStep === undefined &&
    row.tokens > PLACEHOLDER_TOKENS &&
    !PROTECTED_TOOLS.has(row.content[0].toolName)
  );
}
