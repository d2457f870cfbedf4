/** ARCHITECTURE's table of the top folders: which may import which. Types count too, but where the table says `types`. */
import { expect, test } from "vitest";
import { importsOf, sources, textOf } from "./sources.ts";

const TOP = /^(workflows|activities|temporal|worker|client|examples)\//;

/** By the path's beginning: what its files may import of other top folders. The longest beginning decides. */
const rules = new Map(
  [...textOf("ARCHITECTURE.md").matchAll(/^\| code in (`[^|]+`) \| (.*) \|$/gm)].flatMap(
    ([, from = "", to = ""]) => ticked(from).map((path) => [path, ticked(to)] as const),
  ),
);

const edges = sources(/^(workflows|activities|temporal|worker|client|examples)\/.*\.ts$/).flatMap((source) =>
  importsOf(source)
    .filter(({ to }) => TOP.test(to) && topOf(to) !== topOf(source.path))
    .map(({ to }) => ({ from: source.path, to })),
);

test("each top folder imports what ARCHITECTURE allows it, and nothing else", () => {
  expect(rules.size).toBeGreaterThan(6);
  const others = edges.filter(({ from, to }) => !allowedIn(from).some((path) => to.startsWith(path)));
  expect(others.map(({ from, to }) => `${from} → ${to}`)).toEqual([]);
});

test("ARCHITECTURE allows nothing that is not used", () => {
  const unused = [...rules].flatMap(([folder, allowed]) =>
    allowed
      .filter((path) => !edges.some(({ from, to }) => ruleOf(from) === folder && to.startsWith(path)))
      .map((path) => `${folder} → ${path}`),
  );
  expect(unused).toEqual([]);
});

function ruleOf(file: string): string {
  const found = [...rules.keys()].filter((path) => file.startsWith(path));
  return found.toSorted((a, b) => b.length - a.length)[0] ?? "";
}

function allowedIn(file: string): readonly string[] {
  return rules.get(ruleOf(file)) ?? [];
}

function ticked(text: string): string[] {
  return [...text.matchAll(/`([^`]+)`/g)].map(([, path = ""]) => path);
}

function topOf(path: string): string {
  return path.split("/")[0] ?? "";
}
