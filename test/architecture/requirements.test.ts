/** What tests, comments and decisions cite is explained in docs/requirements.md, and all that is explained there is cited. */
import { expect, test } from "vitest";
import { explainedLabels, tagOfLabel } from "../support/labels.ts";
import { sources } from "./sources.ts";

const PAGE = "docs/requirements.md";
const labels = explainedLabels();
const explained = labels.map(({ label }) => label);
const byTag = new Map(explained.map((label) => [tagOfLabel(label), label]));

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

/** `tags: ["R44", "case-12"]` of a test, `tags: [case-12]` of a scenario. */
function tagged(texts: readonly string[]): string[] {
  return texts
    .flatMap((text) => [...text.matchAll(/\btags: \[([^\]]+)\]/g)])
    .flatMap((found) => (found[1] ?? "").replaceAll('"', "").split(/,\s*/))
    .map((tag) => byTag.get(tag) ?? tag);
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
  return new Set([...found, ...tagged(texts.map(({ text }) => text)), ...metOtherwise()]);
}

test("what is cited is explained, once", () => {
  expect(explained.length).toBeGreaterThan(100);
  expect(new Set(explained).size).toBe(explained.length);
  expect([...cited()].filter((id) => !explained.includes(id))).toEqual([]);
});

test("what is explained is cited, or names the test that shows it", () => {
  const known = cited();
  const idle = labels.filter(
    ({ label, meaning }) => !known.has(label) && !/`test\/[\w/.-]+\.test\.ts`/.test(meaning),
  );
  expect(idle.map(({ label }) => label)).toEqual([]);
});
