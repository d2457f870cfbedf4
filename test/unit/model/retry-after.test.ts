import { describe, expect, it } from "vitest";
import { MAX_LIMIT_MS, MAX_RETRY_AFTER_MS, retryAfterMs } from "../../../activities/model/retry-after.ts";

const now = Date.parse("2026-11-21T12:00:00Z");

describe("retry-after", { tags: ["R30"] }, () => {
  it.each([
    [{ "retry-after": "7" }, 7_000],
    [{ "retry-after": "0.5" }, 500],
    [{ "retry-after-ms": "1500" }, 1_500],
    [{ "retry-after-ms": "1500", "retry-after": "60" }, 1_500],
    [{ "retry-after": "Sat, 21 Nov 2026 12:00:30 GMT" }, 30_000],
    [{ "retry-after": "Sat, 21 Nov 2026 11:00:00 GMT" }, 0],
    [{ "retry-after": "86400" }, MAX_RETRY_AFTER_MS],
    [{ "retry-after": "Sun, 22 Nov 2026 12:00:00 GMT" }, MAX_RETRY_AFTER_MS],
  ])("reads %o as %i ms", (headers, ms) => {
    expect(retryAfterMs({ headers: headers as Record<string, string> }, now)).toBe(ms);
  });

  it.each([
    [{ "retry-after": "5400" }, 5_400_000],
    [{ "retry-after": "45s" }, 45_000],
    [{ "retry-after": "1h 30m" }, 5_400_000],
    [{ "retry-after": "2026-11-21T17:00:00Z" }, 5 * 3_600_000],
    [{ "retry-after": "2026-11-21 17:00:00" }, 5 * 3_600_000],
    [{ "retry-after": String(now / 1_000 + 60) }, 60_000],
    [{ "retry-after": "864000" }, MAX_LIMIT_MS],
  ])("waits for a limit as long as %o says: %i ms", (headers, ms) => {
    expect(retryAfterMs({ headers: headers as Record<string, string>, isRateLimit: true }, now)).toBe(ms);
  });

  it.each([undefined, {}, { "retry-after": "soon" }, { "retry-after": "" }, { "retry-after": "-5x" }])(
    "is undefined for %o",
    (headers) => {
      expect(retryAfterMs({ headers: headers as Record<string, string> | undefined }, now)).toBeUndefined();
    },
  );
});

describe("rate limit waits without the header", { tags: ["S16"] }, () => {
  it.each([
    ["Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000. Please try again in 4s.", 4_000],
    ["Please try again in 1m2.5s. Visit the documentation.", 62_500],
    ["Please try again in 28ms.", 28],
    ["Quota exceeded for metric x, limit: 20\nPlease retry in 41.9s.", 41_900],
    ["Please retry after 7 seconds.", 7_000],
    ["Please try again in 2 minutes 30 seconds.", 150_000],
    ["Please try again in 7h12m3s.", 25_923_000],
    ["Please try again in 10 days.", MAX_LIMIT_MS],
  ])("reads %j as %i ms", (text, ms) => {
    expect(retryAfterMs({ text, isRateLimit: true }, now)).toBe(ms);
    expect(retryAfterMs({ text, isRateLimit: false }, now)).toBeUndefined();
  });

  it.each(["Please try again in a moment", "Please try again in 5 requests", "retry in s", ""])(
    "reads no wait in %j",
    (text) => {
      expect(retryAfterMs({ text, isRateLimit: true }, now)).toBeUndefined();
    },
  );

  it.each([
    [
      "the limit that is used up",
      {
        "x-ratelimit-remaining-requests": "9",
        "x-ratelimit-reset-requests": "1s",
        "x-ratelimit-remaining-tokens": "0",
        "x-ratelimit-reset-tokens": "6m0s",
      },
      360_000,
    ],
    [
      "the first that comes back if none is used up",
      { "x-ratelimit-reset-requests": "2m59.56s", "x-ratelimit-reset-tokens": "7.66s" },
      7_660,
    ],
    [
      "Anthropic's dates",
      {
        "anthropic-ratelimit-requests-remaining": "0",
        "anthropic-ratelimit-requests-reset": "2026-11-21T12:00:20Z",
        "anthropic-ratelimit-tokens-reset": "2026-11-21T12:00:02Z",
      },
      20_000,
    ],
    ["OpenRouter's epoch", { "x-ratelimit-remaining": "0", "x-ratelimit-reset": String(now + 9_000) }, 9_000],
    ["seconds since 1970", { "x-ratelimit-reset": String(now / 1_000 + 5) }, 5_000],
    [
      "the limit of Anthropic's plans that is used up",
      {
        "anthropic-ratelimit-unified-status": "rejected",
        "anthropic-ratelimit-unified-reset": String(now / 1_000 + 3_600),
        "anthropic-ratelimit-unified-7d-status": "allowed",
        "anthropic-ratelimit-unified-7d-reset": String(now / 1_000 + 86_400),
      },
      3_600_000,
    ],
    ["Azure's seconds", { "x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "51" }, 51_000],
    ["another spelling", { "ratelimit-remaining": "0", "ratelimit-reset": "50" }, 50_000],
    ["plain seconds", { "x-ratelimit-reset": "3" }, 3_000],
  ])("waits for %s", (_, headers, ms) => {
    expect(retryAfterMs({ headers: headers as Record<string, string>, isRateLimit: true }, now)).toBe(ms);
    expect(retryAfterMs({ headers: headers as Record<string, string> }, now)).toBeUndefined();
  });

  it("prefers the header, then Google's delay, then the sentence, then the resets", () => {
    const headers = { "retry-after": "1", "x-ratelimit-reset": "4" };
    const all = { headers, fields: "retryDelay: 2s", text: "Please retry in 3s.", isRateLimit: true };
    expect(retryAfterMs(all, now)).toBe(1_000);
    const without = { ...all, headers: { "x-ratelimit-reset": "4" } };
    expect(retryAfterMs(without, now)).toBe(2_000);
    expect(retryAfterMs({ ...without, fields: undefined }, now)).toBe(3_000);
    expect(retryAfterMs({ ...without, fields: undefined, text: "" }, now)).toBe(4_000);
  });
});
