/** Compaction: decides what a strategy keeps and what a summary replaces, and gets the summary, by fallbacks. Stores nothing. */
import { strategies, type Strategy, type StrategyName } from "../config/strategies.ts";
import { cutView, tokensOf, type Cut, type CutOptions } from "../transcript/boundary.ts";
import type { StoredMessage } from "../contract/message.ts";
import { messageText } from "./session-facts.ts";
import { planShrink, type ShrinkPlan } from "../transcript/prune-plan.ts";
import { estimateMessage } from "../contract/request-size.ts";
import { MIN_PROGRESS, checkRawAnswer, checkSummary, type SummaryCheck } from "./summary-check.ts";
import {
  type Compaction,
  type CompactionInput,
  type Summarise,
  SummariserOverflow,
  type Attempt,
} from "./compaction.ts";
import { composeSummary, type SummaryMaterial, deterministicSummary } from "./compose-summary.ts";
import { parseSections } from "./summary-document.ts";
import { FULL_RESULT_CHARS, summaryPrompt, type SummaryPrompt } from "./summary-prompt.ts";
import { estimateText } from "../text/tokens.ts";

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
  const previous = cut.previous === undefined ? undefined : messageText(cut.previous);
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

/** A summary with its headings is hardly shorter. Chosen: twice the length of one that says nothing. */
const LEAST_SUMMARY_TOKENS = 300;
/** Room for messages under the trigger, as a multiple of a summary's longest length. */
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
function positionAfter(last: StoredMessage, rows: readonly StoredMessage[]): number {
  const next = rows.find((row) => row.position > last.position);
  return last.position + Math.min(0.5, ((next?.position ?? Infinity) - last.position) / 2);
}

/** Gets from a cut to a summary: a bounded series of fallbacks, the last of which needs no model (requirement 4.2). */
interface SummaryTask {
  readonly input: CompactionInput;
  readonly material: SummaryMaterial;
  /** What the summary is checked against. */
  readonly check: Omit<SummaryCheck, "summary">;
}

interface SummaryResult {
  /** Undefined if every attempt failed. */
  readonly summary: string | undefined;
  readonly attempts: readonly Attempt[];
}

/** Margin for the error of our estimate of the summariser's input. */
const INPUT_SHARE = 0.85;

const FALLBACKS = [
  { rung: "full", resultChars: FULL_RESULT_CHARS, share: 1 },
  { rung: "results-cut", resultChars: 200, share: 0.8 },
  { rung: "oldest-dropped", resultChars: 0, share: 0.4 },
] as const;

/**
 * Tries in turn: the whole input, sized to the summariser's window; shorter tool results; only the newest messages;
 * no model. At most four requests: one per fallback, and one more if an answer is malformed. A fallback whose input
 * would be no smaller than the previous one is skipped. An inflated answer ends the series: a model that cannot
 * shorten this input cannot shorten half of it.
 */
async function writeSummary(task: SummaryTask, summarise: Summarise): Promise<SummaryResult> {
  const attempts: Attempt[] = [];
  if (task.input.deterministic !== true) {
    const summary = await askModel(task, summarise, attempts);
    if (summary !== undefined) return { summary, attempts };
  }
  return withoutModel(task, attempts);
}

async function askModel(
  task: SummaryTask,
  summarise: Summarise,
  attempts: Attempt[],
): Promise<string | undefined> {
  const room = Math.floor((task.input.summariserRoomTokens - outputTokens(task)) * INPUT_SHARE);
  let smallest = Infinity;
  let reminded = false;
  for (const { rung, resultChars, share } of FALLBACKS) {
    let reminder: string | undefined;
    for (;;) {
      const prompt = promptFor(task, resultChars, Math.floor(room * share), reminder);
      // Not even one entry fits the window: a summary of nothing would be worse than none.
      if (prompt.shown === 0) break;
      if (reminder === undefined && prompt.tokens >= smallest) break;
      smallest = Math.min(smallest, prompt.tokens);
      const { summary, ...attempt } = await tryOnce(task, prompt, summarise);
      attempts.push({ rung, requestTokens: prompt.tokens, ...attempt });
      if (summary !== undefined) return summary;
      if (attempt.outcome === "inflated") return undefined;
      if (reminded || attempt.outcome === "overflow") break;
      // Once per compaction, a malformed answer is retried with a note of what was wrong.
      reminded = true;
      reminder = attempt.detail;
    }
  }
  return undefined;
}

/** Reasoning is billed as output too: twice the cap leaves room for it, as far as the summariser's window allows. */
function outputTokens({ material, input }: SummaryTask): number {
  const quarter = Math.floor(input.summariserRoomTokens / 4);
  return Math.min(2 * material.maxTokens, input.summariserMaxOutput ?? quarter, quarter);
}

function promptFor(
  { input, material }: SummaryTask,
  resultChars: number,
  maxTokens: number,
  reminder: string | undefined,
): SummaryPrompt {
  const { replaced: rows, previous } = material;
  return summaryPrompt({ rows, previous, focus: input.focus, reminder, resultChars, maxTokens });
}

type Tried = Pick<Attempt, "outcome" | "detail"> & { readonly summary?: string };

async function tryOnce(task: SummaryTask, prompt: SummaryPrompt, summarise: Summarise): Promise<Tried> {
  const { material, check } = task;
  const { system, text, tokens } = prompt;
  let answer;
  try {
    answer = await summarise({ system, text, tokens, maxOutputTokens: outputTokens(task) });
  } catch (error) {
    if (!(error instanceof SummariserOverflow)) throw error;
    return { outcome: "overflow", detail: error.message };
  }
  // The length is checked before the form: headings do not help an answer that is too long.
  if (estimateText(answer.text) >= check.replacedTokens) {
    return { outcome: "inflated", detail: "The answer is longer than what it would replace." };
  }
  const malformed = checkRawAnswer(answer);
  if (malformed !== undefined) return { outcome: malformed.reason, detail: malformed.detail };
  return checked(composeSummary(material, parseSections(answer.text)), check);
}

function checked(summary: string, check: SummaryTask["check"]): Tried {
  const rejected = checkSummary({ ...check, summary });
  return rejected === undefined
    ? { summary, outcome: "accepted" }
    : { outcome: rejected.reason, detail: rejected.detail };
}

/** Lists of paths and open items are never cut to fit: without a model, twice the cap is accepted. */
const DETERMINISTIC_SLACK = 2;

function withoutModel({ material, check }: SummaryTask, attempts: Attempt[]): SummaryResult {
  const maxTokens = check.maxTokens * DETERMINISTIC_SLACK;
  const { summary, ...attempt } = checked(deterministicSummary(material), { ...check, maxTokens });
  attempts.push({ rung: "deterministic", requestTokens: 0, ...attempt });
  return { summary, attempts };
}
