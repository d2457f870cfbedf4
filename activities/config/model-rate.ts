/** Rate limits of a model, over all sessions and workers. Pure. */
import { z } from "zod";

const count = z.number().int().positive();

/** `models.<id>.rate` of longhaul.yaml, and each rule of the policy's `rates`. */
export const modelRateSchema = z.strictObject({
  requestsPerMinute: count.optional(),
  /** Input and output tokens, as billed. */
  tokensPerMinute: count.optional(),
  /** Most requests open at once. */
  concurrent: count.optional(),
});
export type ModelRate = z.infer<typeof modelRateSchema>;
type RateLimit = keyof ModelRate;

/** How much of a model's limits is used at the time of a request. */
export interface RateUse {
  readonly requests: number;
  /** Tokens used or reserved by this minute's requests. */
  readonly tokens: number;
  readonly open: number;
  /** The part of `tokens` reserved for open requests: some of it is released again. */
  readonly openTokens: number;
  readonly msToNextMinute: number;
}

export interface RateRefusal {
  readonly limit: RateLimit;
  readonly waitMs: number;
}

/** The stricter of the operator's and the session's limit, for each kind; undefined if there is none. */
export function strictest(...rates: readonly (ModelRate | undefined)[]): ModelRate | undefined {
  const limits = (["requestsPerMinute", "tokensPerMinute", "concurrent"] as const).flatMap((limit) => {
    const values = rates.flatMap((rate) => rate?.[limit] ?? []);
    return values.length === 0 ? [] : [[limit, Math.min(...values)] as const];
  });
  return limits.length === 0 ? undefined : Object.fromEntries(limits);
}

/** First wait, growth and longest wait for a request that may end at any moment. Source: ours, an attempt costs some 20 ms. */
const SOON_MS = 1_000;
const SOON_GROWTH = 1.5;
const SOON_MAX_MS = 10_000;

/**
 * Whether one more request fits. A request larger than a whole minute's tokens runs alone.
 * @param tokens that it may use: the estimate of its input, and all of its output
 * @param waits how often this request was refused before
 */
export function rateRefusal(
  { requestsPerMinute = Infinity, tokensPerMinute = Infinity, concurrent = Infinity }: ModelRate,
  use: RateUse,
  tokens: number,
  waits: number,
): RateRefusal | undefined {
  const soonMs = Math.min(SOON_MAX_MS, SOON_MS * SOON_GROWTH ** waits);
  const minuteMs = use.msToNextMinute;
  if (use.requests >= requestsPerMinute) return { limit: "requestsPerMinute", waitMs: minuteMs };
  if (use.tokens > 0 && use.tokens + tokens > tokensPerMinute) {
    const mayComeBack = use.tokens - use.openTokens + tokens <= tokensPerMinute;
    return { limit: "tokensPerMinute", waitMs: mayComeBack ? Math.min(soonMs, minuteMs) : minuteMs };
  }
  return use.open >= concurrent ? { limit: "concurrent", waitMs: soonMs } : undefined;
}
