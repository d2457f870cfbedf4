import fc from "fast-check";
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

const patterns = fc.string({ unit: fc.constantFrom("a", "b", "*"), maxLength: 6 });
const names = fc.string({ unit: fc.constantFrom("a", "b"), maxLength: 8 });

it("agrees with a regular expression about any pattern and name", () => {
  fc.assert(
    fc.property(patterns, names, (pattern, name) => {
      expect(fitsPattern(pattern, name)).toBe(
        new RegExp(`^${pattern.replaceAll("*", ".*")}$`, "s").test(name),
      );
    }),
  );
});

it("may fit a name with a gap exactly if some text in the gap fits", () => {
  fc.assert(
    fc.property(patterns, names, names, (pattern, before, after) => {
      const may = fitsPattern(pattern, `${before}?${after}`, "?");
      const fitting = ["", ...substringsOf(pattern.replaceAll("*", ""))].some((text) =>
        fitsPattern(pattern, before + text + after),
      );
      expect(may).toBe(fitting);
    }),
  );
});

/** What the fixed characters of a pattern may leave to a gap. */
const substringsOf = (text: string): string[] =>
  Array.from(text, (_, from) => Array.from(text, (_one, to) => text.slice(from, to + 1))).flat();

it("a list of tools with many stars is looked at in no time", () => {
  const begun = process.cpuUsage().user;
  expect(isListed([`${"a*".repeat(30)}b`], "a".repeat(128))).toBe(false);
  expect((process.cpuUsage().user - begun) / 1_000).toBeLessThan(1_000);
});
