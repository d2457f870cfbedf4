/** What is hidden from the view: old tool results that a prune may hide, and what is too large even for messages that stay. */
import type { PruneFigures } from "../contract/budget.ts";
import type { StoredMessage } from "../contract/message.ts";
import { tokensSaved } from "./view.ts";

/** Tools whose results stay readable: they are small, and the model relies on them. */
const PROTECTED_TOOLS: ReadonlySet<string> = new Set(["todo", "ask_user"]);
/** User turns whose results are spared longer, if there are older ones. Source: OpenCode. */
const PROTECTED_TURNS = 2;
/** Replacing a result this small by a placeholder with its handle would save nothing. */
const PLACEHOLDER_TOKENS = 32;

export interface PrunePlan {
  /** Sequences of the rows to mark; empty if pruning would save too little. */
  readonly sequences: readonly number[];
  readonly savedTokens: number;
}

/**
 * Old results to hide, walking back from the newest to the last summary. The newest `pruneProtectTokens` of results
 * stay. Results of the last two user turns stay up to twice that, if there are older turns: in a run with one or two
 * messages of the user, these turns are all that there is, and sparing them would leave nothing to hide.
 */
export function planPrune(rows: readonly StoredMessage[], budget: PruneFigures): PrunePlan {
  const { hidden, savedTokens } = beyondProtected(rows, budget.pruneProtectTokens);
  return savedTokens >= budget.pruneMinimumTokens
    ? { sequences: hidden.map((row) => row.sequence), savedTokens }
    : { sequences: [], savedTokens: 0 };
}

/**
 * Tokens of the results that a prune could hide, together with those that are protected: the input of `pruneDue`.
 * New results are added to it, since each pushes an older one out of protection.
 */
export function prunableTokens(rows: readonly StoredMessage[], protectTokens: number): number {
  const { savedTokens, roomTokens } = beyondProtected(rows, protectTokens);
  return savedTokens > 0 ? savedTokens + protectTokens : Math.max(0, protectTokens - roomTokens);
}

interface Beyond {
  /** What may be hidden, oldest first. */
  readonly hidden: readonly StoredMessage[];
  readonly savedTokens: number;
  /** Size that new results may reach before the first is hidden. */
  readonly roomTokens: number;
}

function beyondProtected(rows: readonly StoredMessage[], protectTokens: number): Beyond {
  const hidden: StoredMessage[] = [];
  let [savedTokens, seenTokens, turns] = [0, 0, 0];
  const isTurn = ({ kind }: StoredMessage) => kind === "task" || kind === "guidance";
  const since = rows.slice(rows.findLastIndex((row) => row.kind === "summary") + 1);
  const hasOlder = since.filter(isTurn).length > PROTECTED_TURNS;
  const spared = () => (hasOlder && turns < PROTECTED_TURNS ? 2 * protectTokens : protectTokens);
  for (const row of since.toReversed()) {
    if (isTurn(row)) turns++;
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

/**
 * What is hidden if even the messages that stay are too large for the window: a huge result of the newest calls, a
 * huge message of a person. Rows are only marked, as prune does; what is hidden can be read again.
 */
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
