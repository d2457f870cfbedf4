/** The machinery of every strategy that replaces messages by a summary; they differ in what they keep. */
import type { StrategyName } from "../contract/strategies.ts";
import { cutOptions, cutView, tokensOf, type Cut, type CutOptions } from "../transcript/boundary.ts";
import type { StoredMessage } from "../contract/message.ts";
import { textOf } from "./session-facts.ts";
import { planShrink, type ShrinkPlan } from "../transcript/shrink-plan.ts";
import { checkSummary } from "./summary-check.ts";
import { estimateMessage } from "../transcript/tokens.ts";
import { climbDown } from "./fallback-chain.ts";
import type { Compaction, CompactionInput, Strategy, Summarise } from "./strategy.ts";

export interface SummaryStrategyOptions {
  readonly name: StrategyName;
  readonly trigger: Strategy["trigger"];
  /** What stays, given the budget's own figures. */
  readonly keep?: (input: CompactionInput, standard: CutOptions) => CutOptions;
  /** Never asks a model. */
  readonly deterministic?: boolean;
}

export function summaryStrategy(options: SummaryStrategyOptions): Strategy {
  const { name, trigger } = options;
  return {
    name,
    trigger,
    validate: checkSummary,
    compact: (input, summarise) =>
      compact(
        { ...input, deterministic: options.deterministic === true || input.deterministic },
        options,
        summarise,
      ),
  };
}

async function compact(
  input: CompactionInput,
  options: SummaryStrategyOptions,
  summarise: Summarise,
): Promise<Compaction> {
  const before = input.prefixTokens + tokensOf(input.rows);
  const standard = tightened(input, {
    ...cutOptions(input.budget),
    ...(input.keepMessages === undefined ? {} : { tailMessages: input.keepMessages }),
  });
  const { cut, shrink } = fittingCut(input, options.keep?.(input, standard) ?? standard);
  const { replaced, kept, previous } = cut;
  const hidden = shrink.sequences;
  const onlyHidden: Compaction | undefined =
    hidden.length === 0 ? undefined : { kind: "pruned", hidden, before, after: before - shrink.savedTokens };
  const last = replaced.at(-1);
  if (last === undefined) {
    return onlyHidden ?? { kind: "nothing", reason: "Everything in view is kept word for word.", before };
  }
  const replacedTokens = tokensOf(replaced);
  const previousText = previous === undefined ? undefined : textOf(previous);
  const { summaryTokens: maxTokens } = input.budget;
  const { summary, attempts } = await climbDown(
    {
      input,
      material: { round: input.round, replaced, kept, previous: previousText, maxTokens },
      check: { previous: previousText, replacedTokens, beforeTokens: before, maxTokens },
      validate: checkSummary,
    },
    summarise,
  );
  if (summary === undefined) {
    return onlyHidden ?? { kind: "failed", reason: attempts.at(-1)?.outcome ?? "failed", before, attempts };
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

/**
 * The cut, and what of its kept messages is hidden. Where it does not meet the target: first the tail goes, then the
 * largest of what stays is hidden, and in the end the newest calls go too.
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

/** Tokens of the request after the round, its summary reckoned at its cap, but as less than what it replaces. */
function sizeAfter({ prefixTokens, budget }: CompactionInput, { replaced, kept }: Cut): number {
  return prefixTokens + tokensOf(kept) + Math.min(budget.summaryTokens, tokensOf(replaced));
}

/** After an overflow our own count is not to be trusted: half the tail stays; after a second one, the live turn. */
function tightened({ trigger, deterministic }: CompactionInput, options: CutOptions): CutOptions {
  if (trigger !== "overflow") return options;
  const share = deterministic === true ? 0.25 : 0.5;
  return {
    ...options,
    tailMessages: deterministic === true ? 0 : options.tailMessages,
    tailTokens: Math.floor(options.tailTokens * share),
    userTokens: Math.floor(options.userTokens * share),
    newestUserTokens: options.userTokens,
  };
}

/** Between the last replaced row and whatever comes next: half a place on, or half the way where a summary was there. */
function positionAfter(last: StoredMessage, kept: readonly StoredMessage[]): number {
  const next = kept.find((row) => row.position > last.position);
  return last.position + Math.min(0.5, ((next?.position ?? Infinity) - last.position) / 2);
}
