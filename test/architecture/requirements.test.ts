/** What tests, comments and decisions cite is explained in docs/requirements.md, and all that is explained there is cited. */
import { expect, test } from "vitest";
import { sources } from "./sources.ts";

const PAGE = "docs/requirements.md";
const [page] = sources(new RegExp(`^${PAGE}$`));
const rows = [...(page?.text.matchAll(/^\| ((?:requirement|invariant|case|[A-Z]\d)[^|]*) \|(.*)$/gm) ?? [])];
const explained = rows.map((row) => row[1] ?? "");

/** `[case 27.3]` is a part of case 27. */
const CITES: readonly [RegExp, (id: string) => string][] = [
  [/\brequirements? (D\d|\d(?:\.\d)?)/gi, (id) => `requirement ${id}`],
  [/\binvariants? (\d+)/gi, (id) => `invariant ${id}`],
  [/\bcase (\d+)(?:\.\d+)?[\]), ]/g, (id) => `case ${id}`],
  [/\[([A-Z]\d{1,2})\]/g, (id) => id],
];

/** Decision 0027 has the cases that are met in another way in the first column of a table. */
function metOtherwise(): string[] {
  const [decision] = sources(/^docs\/decisions\/0027-/);
  return [...(decision?.text.matchAll(/^\| ([\w, ]+) \|/gm) ?? [])]
    .flatMap((row) => (row[1] ?? "").split(", "))
    .filter((id) => /^[AR]?\d+$/.test(id))
    .map((id) => (/^\d/.test(id) ? `case ${id}` : id));
}

function cited(): Set<string> {
  const texts = sources(/\.(ts|py|yaml|nft|md)$/).filter(
    ({ path }) =>
      path !== PAGE &&
      !path.startsWith("test/fixtures/") &&
      path !== "test/architecture/requirements.test.ts",
  );
  const found = texts.flatMap(({ text }) =>
    CITES.flatMap(([pattern, name]) => [...text.matchAll(pattern)].map((cite) => name(cite[1] ?? ""))),
  );
  return new Set([...found, ...metOtherwise()]);
}

test("what is cited is explained, once", () => {
  expect(explained.length).toBeGreaterThan(100);
  expect(new Set(explained).size).toBe(explained.length);
  expect([...cited()].filter((id) => !explained.includes(id))).toEqual([]);
});

test("what is explained is cited, or names the test that shows it", () => {
  const known = cited();
  const idle = rows.filter(
    ([, id = "", rest = ""]) => !known.has(id) && !/`test\/[\w/.-]+\.test\.ts`/.test(rest),
  );
  expect(idle.map((row) => row[1])).toEqual([]);
});
