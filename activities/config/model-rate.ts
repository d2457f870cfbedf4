/** How much may be asked of a model, over all sessions and workers. Pure. */
import { z } from "zod";

const count = z.number().int().positive();

/** `models.<id>.rate` of longhaul.yaml, and each rule of the policy's `rates`. */
export const modelRateSchema = z.strictObject({
  requestsPerMinute: count.optional(),
  /** Input and output, as billed. */
  tokensPerMinute: count.optional(),
  /** Requests that are open at once. */
  concurrent: count.optional(),
});
export type ModelRate = z.infer<typeof modelRateSchema>;
type RateLimit = keyof ModelRate;

/** What of a model's limits is used up at the moment of a request. */
export interface RateUse {
  readonly requests: number;
  /** What this minute's requests took, or what is set aside for them. */
  readonly tokens: number;
  readonly open: number;
  /** Of `tokens`, what is set aside for requests that are open: part of it comes back. */
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

/** First wait for a request that may end at any moment, how it grows, and its end. Source: ours, an attempt costs some 20 ms. */
const SOON_MS = 1_000;
const SOON_GROWTH = 1.5;
const SOON_MAX_MS = 10_000;

/**
 * Whether one more request fits. One that is larger than all of a minute's tokens goes alone.
 * @param tokens that it may take: the estimate of its input, and all of its output
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
