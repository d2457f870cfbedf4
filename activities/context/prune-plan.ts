/**
 * Which old tool results may be hidden, and when (requirement 4.3): in batches, and only where that pays, which
 * prune-balance.ts works out. Pure: the workflow asks `pruneDue`.
 */
import type { Budget } from "./budget.ts";
import type { StoredMessage } from "./message.ts";
import { pruneBatch, pruneGain, type PruneOffer } from "./prune-balance.ts";
import { tokensSaved } from "./view.ts";

/** Results that stay readable: small, and the model steers by them. */
const PROTECTED_TOOLS: ReadonlySet<string> = new Set(["todo", "ask_user"]);
/** User turns whose results are spared longer. Source: OpenCode. */
const PROTECTED_TURNS = 2;
/** A result this small gains nothing by a placeholder with its handle. */
const PLACEHOLDER_TOKENS = 32;

export interface PruneNumbers extends Pick<PruneOffer, "usedTokens" | "growthTokens"> {
  /** Tokens of tool results that prune could hide, with those that it protects: see `prunableTokens`. */
  readonly prunableTokens: number;
}

/**
 * `auto`: where hiding pays. `always`: near the compaction trigger, which it puts off; what was said stays word for word
 * for longer, and a step costs more. `never`: compaction alone makes room.
 */
export type PruneMode = "auto" | "always" | "never";

/** Share of the compaction trigger from which `always` acts. */
const NEAR_TRIGGER = 0.9;

/** Whether to hide old results now: enough of them beyond the protected ones, and the mode's own condition. */
export function pruneDue(
  { prunableTokens: prunable, ...numbers }: PruneNumbers,
  budget: Budget,
  mode: PruneMode = "auto",
): boolean {
  const savedTokens = prunable - budget.pruneProtectTokens;
  if (mode === "never" || savedTokens < budget.pruneMinimumTokens) return false;
  if (mode === "always") return numbers.usedTokens >= budget.triggerTokens * NEAR_TRIGGER;
  // All that stays stands behind the first result that goes, but for what the task and the prefix take.
  const offer = { ...numbers, savedTokens, behindTokens: numbers.usedTokens - savedTokens };
  return savedTokens >= pruneBatch(offer, budget) && pruneGain(offer, budget) > 0;
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
  const { hidden, savedTokens } = beyondProtected(rows, budget.pruneProtectTokens);
  return savedTokens >= budget.pruneMinimumTokens
    ? { sequences: hidden.map((row) => row.sequence), savedTokens }
    : { sequences: [], savedTokens: 0 };
}

/**
 * Tokens of the results that a prune could hide, together with those that are protected: what `pruneDue` is asked
 * with. New results come on top of it, since each pushes an older one out of protection.
 */
export function prunableTokens(rows: readonly StoredMessage[], protectTokens: number): number {
  const { savedTokens, roomTokens } = beyondProtected(rows, protectTokens);
  return savedTokens > 0 ? savedTokens + protectTokens : Math.max(0, protectTokens - roomTokens);
}

interface Beyond {
  /** What may be hidden, oldest first. */
  readonly hidden: readonly StoredMessage[];
  readonly savedTokens: number;
  /** What new results may come to before the first is hidden. */
  readonly roomTokens: number;
}

function beyondProtected(rows: readonly StoredMessage[], protectTokens: number): Beyond {
  const hidden: StoredMessage[] = [];
  let [savedTokens, seenTokens, turns] = [0, 0, 0];
  const spared = () => (turns < PROTECTED_TURNS ? 2 * protectTokens : protectTokens);
  for (const row of rows.toReversed()) {
    if (row.kind === "summary") break;
    if (row.kind === "task" || row.kind === "guidance") turns++;
    if (row.role !== "tool" || row.prunedStep !== undefined) continue;
    seenTokens += row.tokens;
    if (seenTokens <= spared() || !isPrunable(row)) continue;
    hidden.push(row);
    savedTokens += tokensSaved(row);
  }
  return { hidden: hidden.toReversed(), savedTokens, roomTokens: Math.max(0, spared() - seenTokens) };
}

function isPrunable(row: StoredMessage): boolean {
  return (
    row.role === "tool" &&
    row.prunedStep === undefined &&
    row.tokens > PLACEHOLDER_TOKENS &&
    !PROTECTED_TOOLS.has(row.content[0].toolName)
  );
}
