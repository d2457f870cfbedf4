import { expect, test } from "vitest";
import { circlesOf, importsOf, sources } from "./sources.ts";

/** Files of the product with the files that each imports, types included. */
const imports = new Map(
  sources(/^(activities|workflows|temporal|worker|client|examples|scripts)\/.*\.(ts|mjs)$/).map((source) => [
    source.path,
    importsOf(source).map(({ to }) => to),
  ]),
);

/** Where a file lies: two folders deep, as a person who looks for it walks. */
const roomOf = (path: string) => path.split("/").slice(0, -1).slice(0, 2).join("/");

test("no file imports itself by way of others", () => {
  expect(circlesOf(imports)).toEqual([]);
});

test("no two folders import each other", () => {
  const ties = new Map<string, string[]>();
  for (const [from, all] of imports) {
    for (const to of all) {
      if (imports.has(to) && roomOf(to) !== roomOf(from)) {
        const tie = `${roomOf(from)} → ${roomOf(to)}`;
        ties.set(tie, [...(ties.get(tie) ?? []), `${from} → ${to}`]);
      }
    }
  }
  const mutual = [...ties].filter(([tie]) => ties.has(tie.split(" → ").reverse().join(" → ")));
  expect(Object.fromEntries(mutual)).toEqual({});
});

test("a circle is found", () => {
  const graph = new Map([
    ["a", ["b"]],
    ["b", ["c", "d"]],
    ["c", ["a"]],
    ["d", []],
  ]);
  expect(circlesOf(graph)).toEqual([["a", "b", "c", "a"]]);
});
