/** What a call costs. Pure. */
import type { Price } from "./model-target.ts";
import type { StepUsage } from "../contract/activities.ts";

const MILLION = 1_000_000;

/** USD; null where the price or the bill is not known, never 0. */
export function costUsd(
  price: Price | undefined,
  usage: Pick<StepUsage, "input" | "cached" | "output"> | undefined,
): number | null {
  if (!price || !usage) return null;
  return (
    ((usage.input - usage.cached) * price.input + usage.cached * price.cached + usage.output * price.output) /
    MILLION
  );
}
