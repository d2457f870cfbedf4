/** The cost of a call. */
import type { ModelTarget, Price } from "./model-target.ts";
import type { StepUsage } from "../contract/activities.ts";

const MILLION = 1_000_000;
/**
 * Names of the standard tier, which the price list is for. Source: OpenAI's reference of `service_tier`; Anthropic's
 * `standard_only`.
 */
const STANDARD_TIERS: ReadonlySet<string> = new Set([
  "auto",
  "default",
  "standard",
  "standard_only",
  "on_demand",
]);

/**
 * USD of one call; null if the price or the usage is unknown, never 0. Not for a sum over calls: a request with more
 * input than `above.tokens` costs more as a whole.
 * @param asked the tier of service; one without a known price makes the cost unknown
 */
export function costUsd(
  price: Price | undefined,
  usage: Pick<StepUsage, "input" | "cached" | "cacheWrite" | "output"> | undefined,
  { tier }: { readonly tier?: string | undefined } = {},
): number | null {
  if (!price || !usage) return null;
  const factor = tier === undefined || STANDARD_TIERS.has(tier) ? 1 : price.tiers?.[tier];
  if (factor === undefined) return null;
  const rate = price.above !== undefined && usage.input > price.above.tokens ? price.above : price;
  const written = usage.cacheWrite ?? 0;
  const plain = usage.input - usage.cached - written;
  return (
    (factor *
      (plain * rate.input +
        usage.cached * rate.cached +
        written * (rate.cacheWrite ?? rate.input) +
        usage.output * rate.output)) /
    MILLION
  );
}

/**
 * The most that a request may cost in USD, by the price in force: all of its input uncached, and written to the cache where that costs
 * more; null if the price is not known.
 */
export function dearestUsd(
  target: Pick<ModelTarget, "price" | "tier">,
  { input, output }: Pick<StepUsage, "input" | "output">,
): number | null {
  const [plain, written] = [0, input].map((cacheWrite) =>
    costUsd(target.price, { input, cached: 0, cacheWrite, output }, target),
  );
  return plain == null || written == null ? null : Math.max(plain, written);
}

/** USD of an answer: as its router reports, otherwise by the tier that served it, otherwise by the requested tier. */
export function answerCostUsd(
  target: { readonly price?: Price | undefined; readonly tier?: string | undefined },
  answer:
    | { readonly usage: StepUsage | undefined; readonly costUsd?: number; readonly tier?: string }
    | undefined,
): number | null {
  return answer?.costUsd ?? costUsd(target.price, answer?.usage, { tier: answer?.tier ?? target.tier });
}

/** A model's name, its price and its requested tier. */
type Priced = Pick<ModelTarget, "model" | "price" | "tier">;

/**
 * The estimated cost of requests that were lost with their worker, by the model that was asked: at most its input,
 * all of it uncached.
 * @returns the session's own model first, then its fallbacks
 */
export function lostRates(config: Priced & { readonly fallback?: readonly Priced[] | undefined }) {
  return [rateOf(config), ...(config.fallback ?? []).map(rateOf)] as const;
}

function rateOf(target: Priced): { readonly model: string; readonly usdPerToken: number | undefined } {
  const ofOne = costUsd(target.price, { input: 1, cached: 0, output: 0 }, target);
  return { model: target.model, usdPerToken: ofOne ?? undefined };
}

/** What a session's calls cost. */
export interface SessionBill {
  /** Sum over the calls whose cost is stored with them. */
  readonly costUsd: number;
  /** The part of `costUsd` that is our estimate, for requests that failed or were lost without usage. */
  readonly estimatedUsd: number;
  /** Calls with usage but no stored cost: of a model that had no price. */
  readonly uncosted: Pick<StepUsage, "input" | "cached" | "output"> & { readonly calls: number };
}

/** USD of a whole session, summaries and wasted requests included; null if any call's cost is unknown. */
export function sessionCostUsd(
  { costUsd: known, uncosted }: SessionBill,
  { price, tier }: { readonly price?: Price | undefined; readonly tier?: string | undefined },
): number | null {
  if (uncosted.calls === 0) return known > 0 || price !== undefined ? known : null;
  // Single calls are no longer known, so none is assumed to be above the threshold.
  const { above: _, ...base } = price ?? {};
  const rest = price === undefined ? null : costUsd(base as Price, uncosted, { tier });
  return rest === null ? null : known + rest;
}
