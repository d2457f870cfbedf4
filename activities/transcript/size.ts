/** How large the next request is, from the rows it is made of, and whether bills contradict what was counted. */
import type { StoredMessage } from "../contract/message.ts";
import { prunableTokens } from "./prune-plan.ts";
import { estimatedNextInput, type NextInputEstimate, contradicts } from "../contract/request-size.ts";
import { shownTokens } from "./view.ts";

export interface SizeInput {
  /** The view's rows in its order. */
  readonly rows: readonly StoredMessage[];
  /** Estimated tokens of system prompt and tools. */
  readonly prefixTokens: number;
  /** Actual / estimated of the model, as learnt; 1 if nothing is known. */
  readonly ratio: number;
  /** Most that the usage of one request can be: see `windowMeasures`. */
  readonly oneRequestTokens: number;
  /** Newest tool results that prune leaves alone, in tokens. */
  readonly pruneProtectTokens: number;
  /** The model that will be asked: another's bill says nothing about it. */
  readonly model?: string | undefined;
}

/** What the size of the next request is computed from, in tokens, if an answer was billed. */
export interface SizeBasis {
  /** Input and output of the newest billed answer. */
  readonly lastInput: number;
  readonly lastOutput: number;
  /** Estimated tokens of what came since; below 0 if prune has hidden more than came. */
  readonly newSince: number;
}

/** The next request alone: known also if the rows come without their contents. */
export interface RequestSize {
  readonly next: NextInputEstimate;
  /** Undefined if the size is an estimate alone. */
  readonly basis: SizeBasis | undefined;
  /** Estimate without any bill, before the ratio: what the ratio is learnt from. */
  readonly pureTokens: number;
  readonly ratio: number;
}

export interface ViewSize extends RequestSize {
  /** Tokens of tool results that prune could hide, with those that it protects. */
  readonly prunableTokens: number;
  /** Tokens by which the request grew a step since the newest summary; undefined if there are too few to tell. */
  readonly growthTokens: number | undefined;
}

/** Fewer steps than this say little about the next ones. */
const MIN_GROWTH_STEPS = 5;

/**
 * Size of the next request. Based on the newest answer's bill, unless a compaction or another model came after it; what prune
 * has hidden since then is subtracted.
 */
export function requestSize({ rows, prefixTokens, ratio, oneRequestTokens, model }: SizeInput): RequestSize {
  const pureTokens = rows.reduce((sum, row) => sum + shownTokens(row), prefixTokens);
  const billed = newestBilled(rows, model);
  const next = estimatedNextInput({
    bill: billed?.usage,
    newTokens: billed === undefined ? 0 : tokensSince(rows, billed),
    pureTokens,
    ratio,
    oneRequestTokens,
  });
  return {
    next,
    basis: next.estimated || billed?.usage === undefined ? undefined : basisOf(billed.usage, next.tokens),
    pureTokens,
    ratio,
  };
}

/** The same, with what prune and compaction decide by. */
export function viewSize(input: SizeInput): ViewSize {
  return {
    ...requestSize(input),
    prunableTokens: prunableTokens(input.rows, input.pruneProtectTokens),
    growthTokens: growth(input.rows),
  };
}

function basisOf({ input, output }: NonNullable<StoredMessage["usage"]>, tokens: number): SizeBasis {
  return { lastInput: input, lastOutput: output, newSince: tokens - input - output };
}

function growth(rows: readonly StoredMessage[]): number | undefined {
  let [tokens, steps] = [0, 0];
  for (let at = rows.length - 1; at >= 0; at -= 1) {
    const row = rows[at];
    if (row === undefined || row.kind === "summary") break;
    tokens += row.kind === "task" ? 0 : row.tokens;
    if (row.kind === "answer") steps += 1;
  }
  return steps < MIN_GROWTH_STEPS ? undefined : Math.round(tokens / steps);
}

/** The newest billed answer, if its bill is this model's and for a view that no later compaction changed. */
function newestBilled(rows: readonly StoredMessage[], model: string | undefined): StoredMessage | undefined {
  const billed = rows.findLast((row) => row.usage !== undefined);
  if (billed === undefined || (billed.model ?? model) !== (model ?? billed.model)) return undefined;
  const compacted = rows.some((row) => row.kind === "summary" && row.sequence > billed.sequence);
  return compacted ? undefined : billed;
}

function tokensSince(rows: readonly StoredMessage[], billed: StoredMessage): number {
  let tokens = 0;
  for (const row of rows) {
    if (row.sequence > billed.sequence) tokens += shownTokens(row);
    // Prune runs after a step's tools: a mark of the billed step or later was not in the billed request.
    else if (row.prunedStep !== undefined && row.prunedStep >= billed.step) {
      tokens -= row.tokens - shownTokens(row);
    }
  }
  return tokens;
}

/** A request's input as it was estimated before it was sent, and as it was billed. */
export interface JudgedCall {
  readonly estimated: number;
  readonly actual: number;
}

/** Number of calls in a row that are judged: a single figure may be an accident. */
export const JUDGED_CALLS = 4;
/** Growth of a conversation from which a bill that does not grow says something. Chosen: a short tool result a call. */
const MIN_GROWTH_TOKENS = 1_000;
/** Share of the expected growth that a true bill shows at least; its estimates are within some percent. */
const MIN_GROWTH_SHARE = 0.1;

/**
 * Whether each of the newest bills contradicts our count by far, or they stay the same while the conversation grows, as from a
 * server that silently cuts requests to its own window.
 * @param calls of one model, newest first
 */
export function areDoubtful(calls: readonly JudgedCall[]): boolean {
  const judged = calls.slice(0, JUDGED_CALLS);
  if (judged.length < JUDGED_CALLS) return false;
  if (judged.every(({ actual, estimated }) => contradicts(actual, estimated))) return true;
  let expected = 0;
  for (const [index, { estimated }] of judged.slice(0, -1).entries()) {
    const before = judged[index + 1]?.actual ?? estimated;
    // The conversation shrank between the two calls, as after a compaction: wait for the next calls.
    if (estimated < before) return false;
    expected += estimated - before;
  }
  const grown = (judged[0]?.actual ?? 0) - (judged.at(-1)?.actual ?? 0);
  return expected >= MIN_GROWTH_TOKENS && grown < MIN_GROWTH_SHARE * expected;
}

/** Whether a single bill gives reason to look at those before it. */
export function isSuspicious({ estimated, actual }: JudgedCall, pureTokens: number): boolean {
  return contradicts(actual, pureTokens) || estimated - actual >= MIN_GROWTH_TOKENS / JUDGED_CALLS;
}
