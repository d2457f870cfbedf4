/** A provider's bill, believed only where it can be true. Pure. */
import type { StepUsage } from "../contract/activities.ts";

/** Above this many windows the figure is nonsense. Source: survey of reliability, R43. */
const ABSURD_WINDOWS = 10;

export interface ReportedUsage {
  readonly inputTokens?: number | undefined;
  readonly outputTokens?: number | undefined;
  readonly inputTokenDetails?: { readonly cacheReadTokens?: number | undefined };
  readonly outputTokenDetails?: { readonly reasoningTokens?: number | undefined };
}

/**
 * The bill in tokens; undefined where it is missing, NaN, of zero input, or more than ten windows.
 * @param windowTokens of the model, as configured
 */
export function trustedUsage(
  reported: ReportedUsage | undefined,
  windowTokens: number,
): StepUsage | undefined {
  const input = reported?.inputTokens;
  const output = reported?.outputTokens;
  const limit = ABSURD_WINDOWS * windowTokens;
  if (!isCount(input) || !isCount(output) || input === 0) return undefined;
  if (input > limit || output > limit) return undefined;
  return {
    input,
    output,
    cached: part(reported?.inputTokenDetails?.cacheReadTokens, input),
    reasoning: part(reported?.outputTokenDetails?.reasoningTokens, output),
  };
}

function isCount(value: number | undefined): value is number {
  return value !== undefined && Number.isFinite(value) && value >= 0;
}

/** A part of a figure is never more than the figure. */
function part(value: number | undefined, whole: number): number {
  return isCount(value) ? Math.min(value, whole) : 0;
}
