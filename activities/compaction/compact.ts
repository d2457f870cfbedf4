/** Compaction: decides what a strategy keeps and what a summary replaces, and gets the summary. Stores nothing. */
import { strategies, type Strategy, type StrategyName } from "../config/strategies.ts";
import { cutView, tokensOf, type Cut, type CutOptions } from "../transcript/boundary.ts";
import type { StoredMessage } from "../contract/message.ts";
import { textOf } from "./session-facts.ts";
import { planShrink, type ShrinkPlan } from "../transcript/shrink-plan.ts";
import { estimateMessage } from "../contract/request-size.ts";
import { MIN_PROGRESS } from "./summary-check.ts";
import { writeSummary } from "./fallback-chain.ts";
import type { Compaction, CompactionInput, Summarise } from "./compaction.ts";

/** @throws whatever `summarise` throws, apart from a `SummariserOverflow` */
export async function compact(
  name: StrategyName,
  input: CompactionInput,
  summarise: Summarise,
): Promise<Compaction> {
  const strategy = strategies[name];
  const deterministic = strategy.writer === "code" || input.deterministic === true;
  const before = input.prefixTokens + tokensOf(input.rows);
  const { cut, shrink } = fittingCut(input, keptBy(strategy, { ...input, deterministic }));
  const { replaced, kept } = cut;
  const hidden = shrink.sequences;
  const onlyHidden =
    hidden.length === 0
      ? undefined
      : ({ kind: "pruned", hidden, before, after: before - shrink.savedTokens } as const);
  const last = replaced.at(-1);
  if (last === undefined) {
    return onlyHidden ?? { kind: "nothing", reason: "Everything in view is kept word for word.", before };
  }
  const replacedTokens = tokensOf(replaced);
  const previous = cut.previous === undefined ? undefined : textOf(cut.previous);
  const { summaryTokens: maxTokens } = input.budget;
  const withoutModel = deterministic || hasLittleToWin(input, before, replacedTokens);
  const { summary, attempts } = await writeSummary(
    {
      input: { ...input, deterministic: withoutModel },
      material: { round: input.round, replaced, kept, previous, maxTokens },
      check: { previous, replacedTokens, beforeTokens: before, maxTokens },
    },
    summarise,
  );
  if (summary === undefined) {
    const reason = attempts.at(-1)?.outcome ?? "failed";
    const failed = { kind: "failed", reason, before, attempts } as const;
    return onlyHidden === undefined ? failed : { ...onlyHidden, failed };
  }
  const summaryTokens = estimateMessage({ role: "assistant", content: [{ type: "text", text: summary }] });
  return {
    kind: "compacted",
    summary,
    summaryTokens,
    replaced: replaced.map((row) => row.sequence),
    hidden,
    position: positionAfter(last, kept),
    before,
    after: before - replacedTokens - shrink.savedTokens + summaryTokens,
    attempts,
  };
}

/** A summary with its headings is hardly shorter. Source: ours, twice the length of one that says nothing. */
const LEAST_SUMMARY_TOKENS = 300;
/** Room for messages under the trigger, as a multiple of a summary's longest length. Source: ours. */
const LEAST_ROOM = 2;

/**
 * Whether a model is not worth its time: its summary would have to be very short to save enough, or the window is so full of
 * instructions and tools that a summary would take most of the rest. A person who asks gets one all the same.
 */
function hasLittleToWin(input: CompactionInput, before: number, replacedTokens: number): boolean {
  const { trigger, budget, prefixTokens } = input;
  if (trigger === "manual") return false;
  const summaryRoom = replacedTokens - before * MIN_PROGRESS;
  const room = budget.triggerTokens - prefixTokens;
  const isNearlyAllPrefix = room < prefixTokens && room < budget.summaryTokens * LEAST_ROOM;
  return summaryRoom < LEAST_SUMMARY_TOKENS || isNearlyAllPrefix;
}

/**
 * What stays: the configuration's figures, otherwise the strategy's own, within the budget's limits. After an
 * overflow our own count cannot be trusted, so half of that stays; after a second one, little more than the live
 * turn.
 */
function keptBy(strategy: Strategy, input: CompactionInput): CutOptions {
  const { budget, rows, trigger, deterministic, options = {} } = input;
  const isOverflow = trigger === "overflow";
  const again = isOverflow && deterministic === true;
  const overflowShare = again ? 0.25 : 0.5;
  const share = isOverflow ? overflowShare : 1;
  const users = {
    userTokens: Math.floor(budget.userTokens * share),
    newestUserTokens: budget.userTokens,
    headMessages: strategy.headMessages === undefined ? 0 : (options.headMessages ?? strategy.headMessages),
  };
  const { keepMessages, preserveLastNTurns: tailTurns = strategy.keepTurns } = options;
  const turns = tailTurns === undefined ? {} : { tailTurns };
  if (strategy.keepRatio !== undefined) {
    const tailTokens = Math.floor(tokensOf(rows) * (options.keepRatio ?? strategy.keepRatio));
    return { ...users, ...turns, tailMessages: keepMessages ?? Infinity, tailTokens };
  }
  // A configured number of turns means whole turns; with a number of messages configured as well, both limits apply.
  const usual = options.preserveLastNTurns === undefined ? budget.tailMessages : Infinity;
  return {
    ...users,
    ...turns,
    tailMessages: again ? 0 : (keepMessages ?? usual),
    tailTokens: Math.floor(budget.tailTokens * share),
  };
}

/**
 * The cut, and which of its kept messages are hidden. If it misses the target, first the tail is replaced too, then the
 * largest kept messages are hidden, and finally the newest calls are replaced.
 */
function fittingCut(input: CompactionInput, options: CutOptions): { cut: Cut; shrink: ShrinkPlan } {
  const { targetTokens = Infinity } = input;
  const excessOf = (cut: Cut) => sizeAfter(input, cut) - targetTokens;
  const nothing = planShrink([], 0);
  const cut = cutView(input.rows, options);
  if (excessOf(cut) <= 0) return { cut, shrink: nothing };
  const withoutTail = cutView(input.rows, { ...options, tailMessages: 0, tailTokens: 0 });
  const excess = excessOf(withoutTail);
  if (excess <= 0) return { cut: withoutTail, shrink: nothing };
  const shrink = planShrink(withoutTail.kept, excess);
  if (shrink.savedTokens >= excess) return { cut: withoutTail, shrink };
  const least = cutView(input.rows, { ...options, withoutLive: true });
  return { cut: least, shrink: planShrink(least.kept, excessOf(least)) };
}

/** Tokens of the request after the compaction, assuming the longest summary, but never more than what it replaces. */
function sizeAfter({ prefixTokens, budget }: CompactionInput, { replaced, kept }: Cut): number {
  return prefixTokens + tokensOf(kept) + Math.min(budget.summaryTokens, tokensOf(replaced));
}

/** A position between the last replaced row and the next: half a place on, or halfway if a summary was there. */
function positionAfter(last: StoredMessage, kept: readonly StoredMessage[]): number {
  const next = kept.find((row) => row.position > last.position);
  return last.position + Math.min(0.5, ((next?.position ?? Infinity) - last.position) / 2);
}
