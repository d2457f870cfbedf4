/** How long a provider asks to wait. Pure. */
import { durationMs, epochMs, hintMs } from "./retry-hint.ts";

/** Longest wait for the end of a limit. Source: ours; the longest limits of subscriptions are weekly. */
export const MAX_LIMIT_MS = 7 * 86_400_000;
/** Longest wait that is honoured for other failures, whose end a provider only guesses. */
export const MAX_RETRY_AFTER_MS = 600_000;

export interface WaitFacts {
  /** Names in lower case. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** The provider's sentence. */
  readonly text?: string;
  /** Fields of the error that say when to try again, such as `retryDelay: 12s`. */
  readonly fields?: string | undefined;
  /** Texts and the limits' resets count only then: other failures mention waiting in passing. */
  readonly isRateLimit?: boolean;
}

/**
 * Milliseconds to wait, at most a week for a limit and ten minutes for another failure; undefined if the provider names no time.
 * The retry header comes first, then the error's fields, then the sentence, then the limits' resets.
 */
export function retryAfterMs(facts: WaitFacts, now: number): number | undefined {
  const { headers = {}, text = "", fields = "", isRateLimit } = facts;
  const asked =
    ofHeader(headers, now) ??
    (isRateLimit ? (hintMs(fields, now) ?? hintMs(text, now) ?? ofResets(headers, now)) : undefined);
  if (asked === undefined) return undefined;
  return Math.max(0, Math.min(isRateLimit ? MAX_LIMIT_MS : MAX_RETRY_AFTER_MS, Math.round(asked)));
}

/** Whether the provider's words say when it will answer again. */
export function namesEnd({ text = "", fields = "" }: Pick<WaitFacts, "text" | "fields">): boolean {
  // Seen from 1970, no time that is named has passed.
  return (hintMs(fields, 0) ?? hintMs(text, 0)) !== undefined;
}

function ofHeader(headers: Readonly<Record<string, string>>, now: number): number | undefined {
  const exact = number(headers["retry-after-ms"]);
  if (exact !== undefined) return exact;
  const text = headers["retry-after"];
  return text === undefined ? undefined : resetMs(text, now);
}

/** `x-ratelimit-reset-tokens`, `anthropic-ratelimit-unified-5h-reset`, `x-rate-limit-reset`, `ratelimit-reset`. */
const RESET = /^(?:x-|anthropic-)?rate-?limit-(?:.*-)?reset(?:-|$)/;

/**
 * OpenAI, Azure and Groq: `x-ratelimit-reset-tokens: 6m0s`; Anthropic: `anthropic-ratelimit-tokens-reset`, a date, and of
 * subscriptions `-unified-5h-reset`, seconds since 1970, with `-unified-5h-status`; OpenRouter: `x-ratelimit-reset`, a time. The
 * wait is that of the limits that are used up; if none is known to be, of the limit that is reset first.
 */
function ofResets(headers: Readonly<Record<string, string>>, now: number): number | undefined {
  const limits = Object.entries(headers).flatMap(([name, value]) => {
    const ms = RESET.test(name) ? resetMs(value, now) : undefined;
    const about = (what: string) => headers[name.replace("reset", what)];
    const isUsedUp = number(about("remaining")) === 0 || about("status") === "rejected";
    return ms === undefined ? [] : [{ ms, isUsedUp }];
  });
  const usedUp = limits.filter((limit) => limit.isUsedUp);
  if (usedUp.length > 0) return Math.max(...usedUp.map((limit) => limit.ms));
  return limits.length === 0 ? undefined : Math.min(...limits.map((limit) => limit.ms));
}

/** Of a header: seconds, seconds or milliseconds since 1970, a length of time, or a date. */
function resetMs(text: string, now: number): number | undefined {
  const value = text.trim();
  const seconds = number(value);
  if (seconds !== undefined) return epochMs(value, now) ?? seconds * 1_000;
  const date = Date.parse(/^\d{4}-\d\d-\d\d[T ][\d:.]+$/.test(value) ? `${value}Z` : value);
  return durationMs(value) ?? (Number.isNaN(date) ? undefined : date - now);
}

function number(text: string | undefined): number | undefined {
  return text !== undefined && /^\s*\d+(\.\d+)?\s*$/.test(text) ? Number(text) : undefined;
}
