import { describe, expect, it } from "vitest";
import {
  isOverflowText,
  isRateLimitText,
  overflowPatterns,
  rateLimitPatterns,
} from "../../../activities/model/overflow.ts";

describe("overflow texts", { tags: ["R40", "case-12"] }, () => {
  it.each(overflowPatterns)("reads as an overflow: $example", ({ pattern, example }) => {
    expect(pattern.test(example)).toBe(true);
    expect(isOverflowText(example)).toBe(true);
    expect(isRateLimitText(example)).toBe(false);
  });

  it.each(rateLimitPatterns)(
    "reads as a rate limit, not as an overflow: $example",
    ({ pattern, example }) => {
      expect(pattern.test(example)).toBe(true);
      expect(isOverflowText(example)).toBe(false);
      expect(isRateLimitText(example)).toBe(true);
    },
  );

  it.each([
    "messages with role 'tool' must be a response to a preceding message with 'tool_calls'",
    "tool_use ids were found without tool_result blocks immediately after",
    "Internal server error",
    "Invalid API key",
    "The file is too large to be read as an image",
    "The number of images 21 exceeds the limit of 20",
    "21 exceeds the limit of 20 images in one request",
    "The file's size of 31457280 bytes exceeds the limit of 20971520",
    "image exceeds 5 MB maximum: 5316852 bytes > 5242880 bytes",
    "Provider returned error",
    "",
  ])("recognises nothing else as one: %s", (text) => {
    expect(isOverflowText(text)).toBe(false);
    expect(isRateLimitText(text)).toBe(false);
  });
});
