/** When a provider will answer again, by its words: one table of what services really write, and generated spellings. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { hintMs } from "../../../activities/model/retry-after.ts";

const now = Date.parse("2026-11-25T12:00:00Z");
const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

describe("the words in which providers say when a limit ends", { tags: ["S16"] }, () => {
  it.each([
    // Lengths of time.
    ["Please try again in 1m2.5s. Visit the documentation.", 62.5 * SECOND],
    ["Rate limit reached. Please try again in 28ms.", 28],
    ["Please retry in 41.9s.", 41_900],
    ["Please retry after 7 seconds.", 7 * SECOND],
    ["Retry after: 45s", 45 * SECOND],
    ["Retry-After: 30", 30 * SECOND],
    ["retry after 60", MINUTE],
    ["Your limit resets in 1h 30m", 90 * MINUTE],
    ["5-hour limit reached - resets in 4h59m", 5 * HOUR - MINUTE],
    ["Usage limit reached, resets in 1 hour and 30 minutes.", 90 * MINUTE],
    ["resets in 1 hour, 5 minutes and 3 seconds", HOUR + 5 * MINUTE + 3 * SECOND],
    ["It will reset in about 3 hours", 3 * HOUR],
    ["Your quota will be refreshed after 2 days", 2 * DAY],
    ["Please wait 30 seconds before trying again.", 30 * SECOND],
    ["Please wait for another 5 min", 5 * MINUTE],
    ["Try again in an hour", HOUR],
    ["try again in 01:30:00", 90 * MINUTE],
    ["Available again in PT1H30M", 90 * MINUTE],
    ["Your quota will reset after 15h46m14s.", 15 * HOUR + 46 * MINUTE + 14 * SECOND],
    ["Weekly limit: resets in 1 week", 7 * DAY],
    // Fields of an error.
    ["retryDelay: 12s", 12 * SECOND],
    ["retry_after: 45", 45 * SECOND],
    ["retry_after_ms: 1500", 1_500],
    ["retryAfterMs: 2500", 2_500],
    ["resets_in_seconds: 5400", 90 * MINUTE],
    ['{"error":{"message":"slow down","retry_after_seconds":20}}', 20 * SECOND],
    [`resets_at: ${now / 1_000 + 3_600}`, HOUR],
    [`resetsAt: ${now + HOUR}`, HOUR],
    [`Claude AI usage limit reached|${now / 1_000 + 7_200}`, 2 * HOUR],
    [`Rate limit exceeded. Limit resets at: ${now / 1_000 + 60}`, MINUTE],
    // Dates.
    ["Your limit will reset at 2026-11-25 15:26:21", 3 * HOUR + 26 * MINUTE + 21 * SECOND],
    ["Your limit will reset at 2026-11-25T15:26:21Z", 3 * HOUR + 26 * MINUTE + 21 * SECOND],
    ["Your limit will reset at 2026-11-25T17:26:21.500+02:00", 3 * HOUR + 26 * MINUTE + 21 * SECOND],
    ["Your limit will reset at 2026-11-25 15:26:21 UTC+8", undefined],
    ["Your limit will reset at 2026-11-25 23:26:21 UTC+8", 3 * HOUR + 26 * MINUTE + 21 * SECOND],
    ["Resets at 2026-11-25 16:00 (Europe/Berlin)", 3 * HOUR],
    ["resets on 2026/11/26 at 9am", 21 * HOUR],
    ["until 2026-12-01", 5 * DAY + 12 * HOUR],
    ["try again at Wed, 25 Nov 2026 12:00:30 GMT", 30 * SECOND],
    ["You can try again at Nov 25, 2026 3:26 PM UTC", 3 * HOUR + 26 * MINUTE],
    ["resets Nov 27 at 5pm (UTC)", 2 * DAY + 5 * HOUR],
    ["Try again at 26th November, 2026 12:00", DAY],
    ["Limit resets Jan 2, 10am (UTC)", 38 * DAY - 2 * HOUR],
    // Times of the day.
    ["You've hit your limit · resets 3pm (Europe/Berlin)", 2 * HOUR],
    ["Claude usage limit reached. Your limit will reset at 9am (America/New_York).", 2 * HOUR],
    ["Your limit will reset at 1pm (Etc/GMT+5)", 6 * HOUR],
    ["resets 5:30am (Asia/Tokyo)", 8 * HOUR + 30 * MINUTE],
    ["try again at 15:30 UTC", 3 * HOUR + 30 * MINUTE],
    ["try again at 7:30 AM PST", 3 * HOUR + 30 * MINUTE],
    ["resets at 11am", 23 * HOUR],
    ["resets at 11:55", 0],
    ["resets at midnight UTC", 12 * HOUR],
    ["resets at midnight (Pacific)", 20 * HOUR],
    ["Resets tomorrow at 8:00 AM UTC", 20 * HOUR],
    ["resets Thursday at 12:00 AM UTC", 12 * HOUR],
    ["Weekly limit reached, resets Mon 9am (UTC)", 4 * DAY + 21 * HOUR],
    // Beijing's time, which the same service writes in English too: a five-hour window ends within five hours.
    [
      "Usage limit reached for 5 hour. Your limit will reset at 2026-11-25 23:26:21",
      3 * HOUR + 26 * MINUTE + 21 * SECOND,
    ],
    ["已达到 5 小时的使用上限。您的限额将在 2026-11-25 21:00:00 重置。", HOUR],
    ["请求过于频繁，请在 45 秒后重试", 45 * SECOND],
    ["请等待 2 分钟后再试", 2 * MINUTE],
  ])("reads %j as %s ms", (text, ms) => {
    expect(hintMs(text, now)).toBe(ms);
  });

  it.each([
    "Please try again in a moment",
    "Please try again in 5 requests",
    "Please try again later.",
    "retry in s",
    "Limit 30000, Used 28000, Requested 4000.",
    "Your limit will reset at 2026-11-25 10:00:00 UTC",
    "Wait for your turn, 3 requests are before you",
    "resets at 45:99",
    "",
  ])("reads no time in %j", (text) => {
    expect(hintMs(text, now)).toBeUndefined();
  });

  it("knows when clocks change", () => {
    const before = Date.parse("2026-10-24T22:00:00Z");
    expect(hintMs("resets at 2026-10-25 09:00 (Europe/Berlin)", before)).toBe(10 * HOUR);
    expect(hintMs("resets 9am (Europe/Berlin)", before)).toBe(10 * HOUR);
  });

  it("reads every length of time in every spelling", () => {
    const spelled = [
      ["h", " h", "hr", " hours", "hours"],
      ["m", " m", "min", " minutes", "mins"],
      ["s", " s", "sec", " seconds", "secs"],
    ] as const;
    const length = fc.tuple(fc.nat({ max: 99 }), fc.nat({ max: 59 }), fc.integer({ min: 1, max: 59 }));
    const cue = fc.constantFrom(
      "try again in ",
      "Retry after: ",
      "resets in ",
      "Please wait ",
      "available again in ",
    );
    fc.assert(
      fc.property(
        length,
        fc.nat({ max: 4 }),
        fc.constantFrom(" ", ", ", " and ", ""),
        cue,
        (parts, style, gap, words) => {
          const names = spelled.map((units) => units[style] ?? "");
          const text = parts
            .flatMap((amount, place) => (amount > 0 ? [`${amount}${names[place]}`] : []))
            .join(gap);
          const [hours, minutes, seconds] = parts;
          expect(hintMs(`Limit reached, ${words}${text}.`, now)).toBe(
            (hours * 60 + minutes) * MINUTE + seconds * SECOND,
          );
        },
      ),
      { numRuns: 1_000 },
    );
  });

  it("reads every moment of the next week in every zone as it was written", () => {
    const zones = [
      "UTC",
      "Europe/Berlin",
      "America/New_York",
      "Asia/Kolkata",
      "Asia/Tokyo",
      "Australia/Lord_Howe",
    ];
    const ahead = fc.integer({ min: 1, max: 7 * 24 * 60 });
    fc.assert(
      fc.property(
        ahead,
        fc.constantFrom(...zones),
        fc.constantFrom("sv-SE", "en-US"),
        (minutes, timeZone, locale) => {
          const at = new Date(now + minutes * MINUTE);
          const written = at.toLocaleString(locale, {
            timeZone,
            ...(locale === "sv-SE"
              ? { dateStyle: "short", timeStyle: "medium" }
              : { dateStyle: "medium", timeStyle: "short" }),
          });
          expect(hintMs(`Your limit will reset at ${written} (${timeZone})`, now)).toBe(minutes * MINUTE);
        },
      ),
      { numRuns: 1_000 },
    );
  });

  it("never throws, and names no moment that has passed", () => {
    const pieces = fc.constantFrom(
      "reset",
      " at ",
      "in ",
      "2026-13-45",
      "25:61",
      "(Europe/Nowhere)",
      "1h",
      "99999999999",
      "::",
      "a m",
      "请在",
    );
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 8 }), (words) => {
        expect(hintMs(words.join(""), now) ?? 0).toBeGreaterThanOrEqual(0);
      }),
    );
  });
});
