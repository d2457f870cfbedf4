/** How long a provider asks to wait. Pure. */

/** Longest wait that is honoured: beyond it the activity's own retry policy decides. */
export const MAX_RETRY_AFTER_MS = 600_000;

export interface WaitFacts {
  /** Names in lower case. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** The provider's sentence. */
  readonly text?: string;
  /** Of Google's RetryInfo, such as `12s`. */
  readonly retryDelay?: string | undefined;
  /** Texts and the limits' resets count only then: other failures mention waiting in passing. */
  readonly isRateLimit?: boolean;
}

/**
 * Milliseconds to wait, at most ten minutes; undefined if the provider names none. The retry header comes first, then
 * Google's RetryInfo, then the sentence, then the limits' resets.
 */
export function retryAfterMs(facts: WaitFacts, now: number): number | undefined {
  const { headers = {}, text = "", retryDelay, isRateLimit } = facts;
  const asked =
    ofHeader(headers, now) ??
    (isRateLimit ? (durationMs(retryDelay ?? "") ?? ofText(text) ?? ofResets(headers, now)) : undefined);
  return asked === undefined ? undefined : capped(asked);
}

function ofHeader(headers: Readonly<Record<string, string>>, now: number): number | undefined {
  const exact = number(headers["retry-after-ms"]);
  if (exact !== undefined) return exact;
  const text = headers["retry-after"];
  const seconds = number(text);
  if (seconds !== undefined) return seconds * 1_000;
  return untilDate(text, now);
}

/** "Please try again in 1m2.5s" (OpenAI, Groq), "retry in 41.9s" (Google), "retry after 7 seconds" (Azure). */
function ofText(text: string): number | undefined {
  const found = /(?:try again|retry) (?:in|after) ((?:\d+(?:\.\d+)? ?[a-z]+ ?)+)/i.exec(text);
  return found?.[1] === undefined ? undefined : durationMs(found[1]);
}

/**
 * OpenAI and Groq: `x-ratelimit-reset-tokens: 6m0s`; Anthropic: `anthropic-ratelimit-tokens-reset`, a date; OpenRouter:
 * `x-ratelimit-reset`, a time. The wait is that of the limits that are used up; if none is known to be, of the limit that
 * is reset first.
 */
function ofResets(headers: Readonly<Record<string, string>>, now: number): number | undefined {
  const limits = Object.entries(headers).flatMap(([name, value]) => {
    if (!/^(?:x|anthropic)-ratelimit-(?:.*-)?reset/.test(name)) return [];
    const ms = resetMs(value, now);
    const remaining = headers[name.replace("reset", "remaining")];
    return ms === undefined ? [] : [{ ms, isUsedUp: number(remaining) === 0 }];
  });
  const usedUp = limits.filter((limit) => limit.isUsedUp);
  if (usedUp.length > 0) return Math.max(...usedUp.map((limit) => limit.ms));
  return limits.length === 0 ? undefined : Math.min(...limits.map((limit) => limit.ms));
}

/** Numbers above these are times since 1970 in seconds, in milliseconds. */
const EPOCH_SECONDS = 1e9;
const EPOCH_MS = 1e12;

function resetMs(text: string, now: number): number | undefined {
  const value = number(text);
  if (value === undefined) return durationMs(text) ?? untilDate(text, now);
  if (value >= EPOCH_MS) return value - now;
  return value >= EPOCH_SECONDS ? value * 1_000 - now : value * 1_000;
}

const UNIT_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const DURATION =
  /^(?:\d+(?:\.\d+)? ?(?:ms|millis(?:econds)?|s(?:ec(?:ond)?s?)?|m(?:in(?:ute)?s?)?|h(?:ours?)?|d(?:ays?)?) ?)+$/i;

/** `6m0s`, `41.9s`, `28ms`, `7 seconds`, `2 minutes`; undefined for anything else. */
function durationMs(text: string): number | undefined {
  if (!DURATION.test(text)) return undefined;
  return [...text.toLowerCase().matchAll(/(\d+(?:\.\d+)?) ?(ms|milli|[smhd])/g)].reduce(
    (sum, [, amount, unit]) =>
      sum + Number(amount) * UNIT_MS[unit === "milli" ? "ms" : (unit as keyof typeof UNIT_MS)],
    0,
  );
}

function untilDate(text: string | undefined, now: number): number | undefined {
  const date = text === undefined ? NaN : Date.parse(text);
  return Number.isNaN(date) ? undefined : date - now;
}

function number(text: string | undefined): number | undefined {
  return text !== undefined && /^\s*\d+(\.\d+)?\s*$/.test(text) ? Number(text) : undefined;
}

function capped(ms: number): number {
  return Math.max(0, Math.min(MAX_RETRY_AFTER_MS, Math.round(ms)));
}
