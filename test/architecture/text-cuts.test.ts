import { expect, test } from "vitest";
import { sources } from "./sources.ts";

/** A cut by a number of characters: `.slice(0, 200)`, `.slice(-MAX_CHARS)`, `.slice(from, from + limit)`. */
const BY_COUNT =
  /\S*\.(?:slice|substring|substr)\((?:0, |-|[^(),]+, [^(),]*)(?:[4-9]\d|\d[\d_]{2,}|[A-Z_]*(?:CHARS|LENGTH)|\w*\.?max\w*|limit\w*)\b[^()]*\)/g;
/** Lists and bytes, by what they are called or made of, and digests: there are no characters to part. */
const NO_TEXT = /(?:^|\w{2}s|\bfound|\]\)?|\.digest\("\w+"\)|\.toSorted\(.*\))\.slice\([^()]*\)$/;

test("text is cut on code points, by the functions of one file", () => {
  const found = sources(/^(activities|workflows|temporal|examples|client|worker)\/.*\.ts$/)
    .filter(({ path }) => path !== "activities/text/cut.ts")
    .flatMap(({ path, text }) =>
      text
        .split("\n")
        .flatMap((line) => line.match(BY_COUNT) ?? [])
        .filter((cut) => !NO_TEXT.test(cut))
        .map((cut) => `${path}: ${cut}`),
    );
  expect(found, "Use activities/text/cut.ts: a cut inside a character breaks Postgres' json.").toEqual([]);
});

test.each([
  "text.slice(0, 200)",
  "clean(name).slice(0, MAX_NAME_CHARS)",
  "said.slice(-300)",
  "text.slice(at, at + limit)",
])("a cut such as %s is found", (cut) => {
  expect(cut.match(BY_COUNT)?.filter((found) => !NO_TEXT.test(found))).toEqual([cut]);
});
