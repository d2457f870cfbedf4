/**
 * Tokens: one sketch of a tokenizer and one formula, behind the trigger, the display and the log (requirement 4.5).
 * Pure, and free of Node's and the browser's globals: the workflow may import it.
 */
import type { Message, ToolResultPart } from "./message.ts";
import { mediaTokens, type Viewer } from "./media-tokens.ts";
import { sketchTokens } from "./token-sketch.ts";

/** What a message's frame costs: role, separators. Source: OpenAI's cookbook, 3–4 a message. */
const MESSAGE_TOKENS = 4;
/** A call's or result's frame: type, id, name of the fields. */
const CALL_TOKENS = 8;
/** A tool's frame in the request. */
const TOOL_TOKENS = 8;

/** Tokens of a text: −3…+3 % on prose, code and Chinese, −15 % on tool output (measured against o200k). */
export function estimateText(text: string): number {
  return text === "" ? 0 : Math.max(1, Math.round(sketchTokens(text)));
}

/**
 * Tokens of one message as the model gets it, its frame included. Reasoning counts by its text.
 * @param viewer the model that gets it: pictures and PDFs count by its provider's rule
 */
export function estimateMessage(message: Message, viewer?: Viewer): number {
  let tokens = MESSAGE_TOKENS;
  for (const part of message.content) {
    switch (part.type) {
      case "text":
      case "reasoning":
        tokens += estimateText(part.text);
        break;
      case "file":
        tokens += mediaTokens(part, viewer);
        break;
      case "tool-call":
        tokens += CALL_TOKENS + estimateText(part.toolName) + estimateText(inputText(part.input));
        break;
      case "tool-result":
        tokens += estimateResult(part, viewer);
        break;
    }
  }
  return tokens;
}

function estimateResult(part: ToolResultPart, viewer: Viewer | undefined): number {
  const files = part.files ?? [];
  return (
    CALL_TOKENS + estimateText(part.text) + files.reduce((sum, file) => sum + mediaTokens(file, viewer), 0)
  );
}

function inputText(input: unknown): string {
  return typeof input === "string" ? input : (JSON.stringify(input) ?? "");
}

/** Tokens of the tools in every request. */
export function estimateTools(
  tools: readonly { readonly name: string; readonly description: string; readonly inputSchema: unknown }[],
): number {
  return tools.reduce(
    (sum, tool) =>
      sum +
      TOOL_TOKENS +
      estimateText(tool.name) +
      estimateText(tool.description) +
      estimateText(inputText(tool.inputSchema)),
    0,
  );
}

/** What the next request's size is worked out from. */
export interface NextInput {
  /** The newest bill that still fits the view: none after a compaction, a prune or a change of model. */
  readonly bill?: { readonly input: number; readonly output: number } | undefined;
  /** Estimated tokens of the messages that came after the billed answer. */
  readonly newTokens: number;
  /** Estimated tokens of the whole request: system, tools, messages. */
  readonly pureTokens: number;
  /** Actual / estimated of this model, as learnt; 1 if nothing is known. */
  readonly ratio?: number | undefined;
  /** Bills of more than four windows are sums over many calls, not one request. */
  readonly windowTokens?: number | undefined;
}

export interface NextInputEstimate {
  readonly tokens: number;
  /** True if it is not based on a bill: shown as `(estimated)`. */
  readonly estimated: boolean;
}

/**
 * Size of the next request, in tokens: last input + last output + estimate of what came after; without a usable
 * bill the pure estimate. The only such formula: trigger, display and log all ask here.
 * Source: requirement 4.5, requirement D3.
 */
export function estimatedNextInput(next: NextInput): NextInputEstimate {
  const ratio = usableRatio(next.ratio);
  const { bill } = next;
  if (bill === undefined || !isPlausible(bill, next)) {
    return { tokens: Math.round(next.pureTokens * ratio), estimated: true };
  }
  return { tokens: Math.round(bill.input + bill.output + next.newTokens * ratio), estimated: false };
}

/**
 * A bill of more than so many times our count, or of less than that part of it, does not belong to this request: it is a sum over several,
 * another unit, another request. Source: ours, with room for what a true bill differs by: a tokenizer's ratio (up to 2), images
 * that are counted at one size, a prompt that a compatible server puts in front. Bills of ten times the request were seen; and
 * of less and less of it, always the same: Ollama and LM Studio cut a request to their own window without a word and bill what is
 * left, so that by their bills no compaction would ever be due. Output of one repeated character is billed at less than half of
 * our count as well, and truly.
 */
const MAX_BILL_FACTOR = 5;
const MIN_BILL_FACTOR = 0.25;
/** Below this a constant that a server adds weighs more than any factor. */
const MIN_JUDGED_TOKENS = 2_000;

/** True if a billed input cannot belong to a request with our count. Such a bill is not used. */
export function contradicts(billedTokens: number, countedTokens: number): boolean {
  if (countedTokens < MIN_JUDGED_TOKENS) return false;
  return billedTokens > countedTokens * MAX_BILL_FACTOR || billedTokens < countedTokens * MIN_BILL_FACTOR;
}

// Zero, NaN and sums over many calls are seen in the wild.
function isPlausible(bill: { input: number; output: number }, next: NextInput): boolean {
  const { input, output } = bill;
  if (!Number.isFinite(input) || !Number.isFinite(output) || input <= 0 || output < 0) return false;
  if (next.windowTokens !== undefined && input > 4 * next.windowTokens) return false;
  return !contradicts(input, next.pureTokens - next.newTokens - output);
}

/** Actual / estimated input of a model over its calls. */
export interface TokenRatio {
  readonly ratio: number;
  readonly samples: number;
}

/** Beyond these a sample says more about a mistake than about a tokenizer. */
const MIN_RATIO = 0.5;
const MAX_RATIO = 2;
/** A new sample never counts for less than this share, so that a changed tokenizer is learnt in some 20 calls. */
const MIN_WEIGHT = 0.1;

/**
 * The ratio after one more call. `estimated` is the pure estimate **before** any ratio, `actual` the billed input.
 * Unusable figures, and bills of another request, leave it as it was; samples are clamped to 0.5–2 and averaged, later ones with weight 0.1.
 */
export function learnRatio(previous: TokenRatio | undefined, estimated: number, actual: number): TokenRatio {
  const before = { ratio: usableRatio(previous?.ratio), samples: previous?.samples ?? 0 };
  if (!Number.isFinite(estimated) || !Number.isFinite(actual) || estimated <= 0 || actual <= 0) return before;
  if (contradicts(actual, estimated)) return before;
  // It may be true of this request, such as of repeated characters, and says nothing about others.
  if (estimated >= MIN_JUDGED_TOKENS && actual < estimated * MIN_RATIO) return before;
  const sample = clampRatio(actual / estimated);
  const weight = Math.max(MIN_WEIGHT, 1 / (before.samples + 1));
  return { ratio: before.ratio + weight * (sample - before.ratio), samples: before.samples + 1 };
}

function clampRatio(ratio: number): number {
  return Math.min(MAX_RATIO, Math.max(MIN_RATIO, ratio));
}

function usableRatio(ratio: number | undefined): number {
  return ratio !== undefined && Number.isFinite(ratio) && ratio > 0 ? clampRatio(ratio) : 1;
}

/** Share by which an estimate was above (+) or below (−) the bill; undefined without a bill. */
export function estimateError(estimated: number, actual: number | undefined): number | undefined {
  return actual === undefined || !(actual > 0) ? undefined : (estimated - actual) / actual;
}
