import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { project, sources, textOf } from "./sources.ts";

const MAX_AGENTS_LINES = 60;
const MAX_README_LINES = 150;
const MAX_TOUR_LINES = 60;
const MAX_TERMS = 10;

test(`the README has at most ${MAX_README_LINES} lines`, () => {
  expect(textOf("README.md").split("\n").length).toBeLessThanOrEqual(MAX_README_LINES);
});

/** Of headings, as Git hosts make them: lower case, no punctuation, dashes for spaces; and former ones, kept as `<a id>`. */
function anchorsOf(path: string): string[] {
  const text = textOf(path);
  const ofHeadings = [...text.matchAll(/^#+ (.*)$/gm)].map((heading) =>
    (heading[1] ?? "")
      .toLowerCase()
      .replaceAll(/[^\w\s-]/g, "")
      .replaceAll(/\s/g, "-"),
  );
  const former = [...text.matchAll(/^<a id="([^"]+)"><\/a>$/gm)].map(([, id = ""]) => id);
  return [...ofHeadings, ...former];
}

test("links between documents lead to files and headings", () => {
  const broken = sources(/^[^/]+\.md$|^docs\/.*\.md$|^test\/.*README\.md$/).flatMap(({ path, text }) =>
    [...text.matchAll(/\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)/g)]
      .filter(([, file = "", anchor]) => {
        const target = file === "" ? path : join(dirname(path), file);
        const found = existsSync(join(project, target));
        return !found || (anchor !== undefined && !anchorsOf(target).includes(anchor));
      })
      .map(([link]) => `${path}: ${link}`),
  );
  expect(broken).toEqual([]);
});

test("files that the documents name are there", () => {
  const examples = /my[-_]|NNNN/;
  // Decisions are history: they may name what has gone since.
  const named = sources(/^(?!CHANGELOG)[^/]+\.md$|^docs\/[^/]+\.md$/).flatMap(({ text }) =>
    [
      ...text.matchAll(
        /`((?:workflows|activities|temporal|examples|worker|client|test|scripts|docs)\/[^`\s]+)`/g,
      ),
    ].map((found) => found[1] ?? ""),
  );
  expect(named.length).toBeGreaterThan(10);
  const missing = named.filter((path) => !examples.test(path) && !existsSync(join(project, path)));
  expect(missing).toEqual([]);
});

test("each decision has a text, and a line in the index with its title", () => {
  const decisions = sources(/^docs\/decisions\/\d{4}-.*\.md$/);
  expect(decisions.length).toBeGreaterThan(40);
  const index = textOf("docs/decisions/README.md");
  const wrong = decisions.filter(({ path, text }) => {
    const [, number, title] = /^# (\d{4}) (.+)\n/.exec(text) ?? [];
    return number === undefined || !index.includes(`[${number}](${path.split("/").at(-1)}) ${title}\n`);
  });
  expect(wrong.map(({ path }) => path)).toEqual([]);
});

test("ARCHITECTURE.md says what each room is for", () => {
  const text = textOf("ARCHITECTURE.md");
  const rooms = sources(/^(activities|temporal|worker|client|examples)\/[^/]+\/[^/]+\.ts$/).map(
    ({ path }) => path.split("/")[1],
  );
  expect(new Set(rooms).size).toBeGreaterThan(20);
  expect([...new Set(rooms)].filter((room) => !text.includes(`\`${room}/`))).toEqual([]);
});

test(`the tour has at most ${MAX_TOUR_LINES} lines, ARCHITECTURE.md ${MAX_TERMS} terms`, () => {
  expect(textOf("docs/code-tour.md").split("\n").length - 1).toBeLessThanOrEqual(MAX_TOUR_LINES);
  const [words = ""] = textOf("ARCHITECTURE.md").match(/(?<=\n## Words\n)[^]*?(?=\n## )/) ?? [];
  const rows = words.match(/^\| (?!word |-)/gm) ?? [];
  expect(rows.length).toBeGreaterThan(5);
  expect(rows.length).toBeLessThanOrEqual(MAX_TERMS);
});

test(`AGENTS.md has at most ${MAX_AGENTS_LINES} lines`, () => {
  expect(textOf("AGENTS.md").split("\n").length).toBeLessThanOrEqual(MAX_AGENTS_LINES);
});
