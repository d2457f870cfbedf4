import { expect, it } from "vitest";
import { isListed } from "../../activities/config/mcp-settings.ts";
import { fitsPattern } from "../../activities/text/lists.ts";

it.each([
  ["a", "a"],
  ["*", ""],
  ["*", "a\nb"],
  ["a*", "a"],
  ["*a", "ba"],
  ["a*a", "aa"],
  ["a*b*c", "a1b2b3c"],
  ["a**c", "abc"],
  ["a.c[1]*", "a.c[1]x"],
  ["*ab*ab", "abab"],
])("%j is all of %j", (pattern, name) => {
  expect(fitsPattern(pattern, name)).toBe(true);
});

it.each([
  ["", "a"],
  ["a", "ab"],
  ["a*a", "a"],
  ["a.c", "abc"],
  ["a*b*c", "acb"],
  ["*ab*ab", "ab"],
  ["ab*bc", "abc"],
])("%j is not all of %j", (pattern, name) => {
  expect(fitsPattern(pattern, name)).toBe(false);
});

it("a list of tools with many stars is looked at in no time", () => {
  const begun = process.cpuUsage().user;
  expect(isListed([`${"a*".repeat(30)}b`], "a".repeat(128))).toBe(false);
  expect((process.cpuUsage().user - begun) / 1_000).toBeLessThan(1_000);
});
