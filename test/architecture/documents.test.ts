import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { project, sources, textOf } from "./sources.ts";

const MAX_AGENTS_LINES = 60;
const MAX_README_LINES = 150;

test(`the README has at most ${MAX_README_LINES} lines`, () => {
  expect(textOf("README.md").split("\n").length).toBeLessThanOrEqual(MAX_README_LINES);
});

test("links between documents lead to files", () => {
  const broken = sources(/^[^/]+\.md$|^docs\/.*\.md$/).flatMap(({ path, text }) =>
    [...text.matchAll(/\]\((?!https?:)([^)#]+)\)/g)]
      .map((found) => found[1] ?? "")
      .filter((target) => !existsSync(join(project, dirname(path), target)))
      .map((target) => `${path}: ${target}`),
  );
  expect(broken).toEqual([]);
});

test("files that the documents name are there", () => {
  const examples = /my[-_]|NNNN/;
  const named = sources(/^(?!CHANGELOG)[^/]+\.md$|^docs\/.*\.md$/).flatMap(({ text }) =>
    [...text.matchAll(/`((?:workflows|activities|worker|client|test|scripts|docs)\/[^`\s]+)`/g)].map(
      (found) => found[1] ?? "",
    ),
  );
  expect(named.length).toBeGreaterThan(10);
  const missing = named.filter((path) => !examples.test(path) && !existsSync(join(project, path)));
  expect(missing).toEqual([]);
});

test(`AGENTS.md has at most ${MAX_AGENTS_LINES} lines`, () => {
  expect(textOf("AGENTS.md").split("\n").length).toBeLessThanOrEqual(MAX_AGENTS_LINES);
});
