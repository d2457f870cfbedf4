/**
 * How large the next request is, and what it consists of: one formula for the trigger, the display and the log (requirement 4.5).
 */
import { estimateText, mediaTokens, type Viewer } from "../text/tokens.ts";
import type { Message, ToolResultPart } from "./message.ts";

/** Size of the next request, in tokens. */
export interface ContextSize {
  /** Known tokens of the next request. */
  readonly used: number;
  /** False if `used` comes from usage that a provider reported. */
  readonly estimated: boolean;
  /** Total tokens of tool results that prune could hide. */
  readonly prunable: number;
  /** Tokens by which the request grows per step, as measured since the newest summary. */
  readonly growth?: number;
  /** Calibration factor for estimates of new messages with this model; 1 if absent. */
  readonly ratio?: number;
}

/** Overhead of a message: role, separators. Source: OpenAI's cookbook, 3–4 a message. */
const MESSAGE_TOKENS = 4;
/** Overhead of a call or result: type, id, field names. */
const CALL_TOKENS = 8;
/** Overhead of a tool in the request. */
const TOOL_TOKENS = 8;

/**
 * Tokens of one message as the model gets it, overhead included. Reasoning counts by its text.
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

/** The inputs to the size of the next request. */
export interface NextInput {
  /** The newest reported usage that still matches the view: none after a compaction, a prune or a change of model. */
  readonly bill?: { readonly input: number; readonly output: number } | undefined;
  /** Estimated tokens of the messages that came after the billed answer. */
  readonly newTokens: number;
  /** Estimated tokens of the whole request: system, tools, messages. */
  readonly pureTokens: number;
  /** Calibration factor of this model, actual / estimated; 1 if unknown. */
  readonly ratio?: number | undefined;
  /** Most that the usage of one request can be: more is a sum over many calls. */
  readonly oneRequestTokens?: number | undefined;
}

export interface NextInputEstimate {
  readonly tokens: number;
  /** True if it is not based on reported usage: shown as `(estimated)`. */
  readonly estimated: boolean;
}

/**
 * Size of the next request, in tokens: last input + last output + estimate of later messages; without usable usage,
 * the pure estimate. The only such formula: trigger, display and log all use it.
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
 * Reported usage of more than MAX_BILL_FACTOR times our count, or less than MIN_BILL_FACTOR times it, does not belong
 * to this request: it is a sum over several, another unit, or another request. Chosen: with room for legitimate
 * differences: a tokenizer's ratio (up to 2), images that are counted at one size, a prompt that a compatible server
 * prepends. Usage of ten times the request was seen. So was usage that stays the same while the request grows: Ollama
 * and LM Studio silently cut a request to their own window and report only what is left, so by their figures no
 * compaction would ever be due. Output of one repeated character is also reported at less than half of our count, and
 * correctly so.
 */
const MAX_BILL_FACTOR = 5;
const MIN_BILL_FACTOR = 0.25;
/** Below this a constant that a server adds weighs more than any factor. */
const MIN_JUDGED_TOKENS = 1_500;

/** True if a reported input cannot belong to a request of our count. Such usage is not used. */
export function contradicts(billedTokens: number, countedTokens: number): boolean {
  if (countedTokens < MIN_JUDGED_TOKENS) return false;
  return billedTokens > countedTokens * MAX_BILL_FACTOR || billedTokens < countedTokens * MIN_BILL_FACTOR;
}

// Zero, NaN and sums over many calls do occur.
function isPlausible(bill: { input: number; output: number }, next: NextInput): boolean {
  const { input, output } = bill;
  if (!Number.isFinite(input) || !Number.isFinite(output) || input <= 0 || output < 0) return false;
  if (next.oneRequestTokens !== undefined && input > next.oneRequestTokens) return false;
  return !contradicts(input, next.pureTokens - next.newTokens - output);
}

/** A model's actual / estimated input over its calls. */
export interface TokenRatio {
  readonly ratio: number;
  readonly samples: number;
}

/** A sample outside these bounds reflects an error rather than a tokenizer. */
const MIN_RATIO = 0.5;
const MAX_RATIO = 2;
/** The least weight of a new sample, so that a changed tokenizer is learnt in some 20 calls. */
const MIN_WEIGHT = 0.1;

/**
 * The ratio after one more call. `estimated` is the pure estimate **before** any ratio, `actual` the reported input.
 * Unusable figures, and usage of another request, leave the ratio unchanged; samples are clamped to 0.5–2 and
 * averaged, later ones with weight 0.1.
 */
export function learnRatio(previous: TokenRatio | undefined, estimated: number, actual: number): TokenRatio {
  const before = { ratio: usableRatio(previous?.ratio), samples: previous?.samples ?? 0 };
  if (!Number.isFinite(estimated) || !Number.isFinite(actual) || estimated <= 0 || actual <= 0) return before;
  if (contradicts(actual, estimated)) return before;
  // The figure may be right for this request, such as one of repeated characters, but says nothing about others.
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

/** Share by which an estimate was above (+) or below (−) the reported usage; undefined without one. */
export function estimateError(estimated: number, actual: number | undefined): number | undefined {
  return actual === undefined || !(actual > 0) ? undefined : (estimated - actual) / actual;
}

/** What fills the context window, for `context` and the Web UI (requirement 4.5). All in tokens; the five parts add up to the window. */
export interface Breakdown {
  /** Estimated. */
  readonly system: number;
  /** Estimated. */
  readonly tools: number;
  /** Derived from the total: tokens used beyond system and tools. */
  readonly messages: number;
  readonly free: number;
  /** Reserved for the answer. */
  readonly outputBuffer: number;
}

/** A part displayed smaller or larger than computed, so that no part is below 0 and the parts add up to the window. */
export interface CappedPart {
  readonly part: BreakdownPart;
  /** Tokens computed for the part; below 0 if system and tools were estimated at more than the whole request. */
  readonly wanted: number;
}

export type BreakdownPart = keyof Breakdown;

/** Title and symbol of each part, in the order of the bar. */
export const BREAKDOWN_PARTS: readonly (readonly [BreakdownPart, string, string])[] = [
  ["system", "system prompt", "▓"],
  ["tools", "tools", "▒"],
  ["messages", "messages", "█"],
  ["free", "free", "░"],
  ["outputBuffer", "output buffer", "▚"],
];

/**
 * System and tools are estimated; messages are the rest of the next request, and free is the rest of the window. A
 * request larger than the window first takes from the output buffer.
 * @param sizes tokens; `used` is the next request
 */
export function toBreakdown(sizes: {
  readonly contextWindow: number;
  readonly outputTokens: number;
  readonly used: number;
  readonly system: number;
  readonly tools: number;
}): { readonly parts: Breakdown; readonly capped: readonly CappedPart[] } {
  const { contextWindow, outputTokens, used } = sizes;
  const wantedTokens = {
    system: sizes.system,
    tools: sizes.tools,
    messages: used - sizes.system - sizes.tools,
    outputBuffer: outputTokens,
  };
  let room = contextWindow;
  const take = (tokens: number): number => {
    const takenTokens = Math.min(Math.max(0, tokens), room);
    room -= takenTokens;
    return takenTokens;
  };
  const system = take(wantedTokens.system);
  const tools = take(wantedTokens.tools);
  const messages = take(wantedTokens.messages);
  const outputBuffer = take(wantedTokens.outputBuffer);
  const parts = { system, tools, messages, free: room, outputBuffer };
  const capped = (["system", "tools", "messages", "outputBuffer"] as const)
    .filter((part) => parts[part] !== wantedTokens[part])
    .map((part) => ({ part, wanted: wantedTokens[part] }));
  return { parts, capped };
}

/** The window as a bar of `cells`: how many cells each part takes, rounded cumulatively from the left so that they add up. */
export function toBar(parts: Breakdown, cells: number): readonly (readonly [BreakdownPart, number])[] {
  const whole = BREAKDOWN_PARTS.reduce((sum, [name]) => sum + parts[name], 0);
  let begin = 0;
  let drawn = 0;
  return BREAKDOWN_PARTS.map(([name]) => {
    begin += parts[name];
    const endOfNothing = name === "free" ? cells : drawn;
    const end = whole > 0 ? Math.round((begin / whole) * cells) : endOfNothing;
    const wide = Math.max(0, end - drawn);
    drawn = Math.max(drawn, end);
    return [name, wide] as const;
  });
}
