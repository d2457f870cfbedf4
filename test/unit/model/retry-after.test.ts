import { describe, expect, it } from "vitest";
import { MAX_RETRY_AFTER_MS, retryAfterMs } from "../../../activities/model/retry-after.ts";

const now = Date.parse("2026-11-21T12:00:00Z");

describe("retry-after [R30]", () => {
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
    expect(retryAfterMs(headers as Record<string, string>, now)).toBe(ms);
  });

  it.each([undefined, {}, { "retry-after": "soon" }, { "retry-after": "" }, { "retry-after": "-5x" }])(
    "is undefined for %o",
    (headers) => {
      expect(retryAfterMs(headers as Record<string, string> | undefined, now)).toBeUndefined();
    },
  );
});
