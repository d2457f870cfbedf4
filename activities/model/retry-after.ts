/** What a provider asks to be waited. Pure. */

/** Longest wait that is honoured: beyond it an activity's own retry policy is the better judge. */
export const MAX_RETRY_AFTER_MS = 600_000;

/**
 * Milliseconds from `retry-after-ms`, or from `retry-after` in seconds or as an HTTP date; at most ten minutes.
 * Undefined where neither is there or readable.
 * @param headers names in lower case
 */
export function retryAfterMs(
  headers: Readonly<Record<string, string>> | undefined,
  now: number,
): number | undefined {
  const exact = number(headers?.["retry-after-ms"]);
  if (exact !== undefined) return capped(exact);
  const text = headers?.["retry-after"];
  const seconds = number(text);
  if (seconds !== undefined) return capped(seconds * 1_000);
  const date = text === undefined ? NaN : Date.parse(text);
  return Number.isNaN(date) ? undefined : capped(date - now);
}

function number(text: string | undefined): number | undefined {
  return text !== undefined && /^\s*\d+(\.\d+)?\s*$/.test(text) ? Number(text) : undefined;
}

function capped(ms: number): number {
  return Math.max(0, Math.min(MAX_RETRY_AFTER_MS, Math.round(ms)));
}
