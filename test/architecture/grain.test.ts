/**
 * A file is one concept, neither a crumb nor a heap: it has a second importer or at least 80 lines. The other bound, 400 lines, is in
 * files.test.ts.
 */
import { expect, test } from "vitest";
import { importsOf, sources } from "./sources.ts";

const MIN_LINES = 80;

/** One a file by its kind, or started by something else than an import. */
const ONE_A_FILE: readonly (readonly [what: string, path: RegExp])[] = [
  ["commands", /^client\/commands\//],
  ["tools", /^activities\/tools\/(own\/define-tool|[^/]+)\.ts$/],
  ["wires", /^activities\/model\/wires\//],
  ["schema tables", /^activities\/store\/schema\//],
  ["activities", /^activities\/(step\/prune|follow\/refresh-checkout)\.ts$/],
  ["adapters", /^worker\/send-notice\.ts$/],
  ["programs", /^(client|worker|examples\/rehearsal)\/main\.ts$/],
  [
    "packages' entries, and what scripts call",
    /^(client\/library\/index|activities\/store\/events-schema)\.ts$/,
  ],
  // Temporal loads each of them by its path, and takes it by the name of its one export.
  ["parts of the bundle", /^workflows\/(index|short-stacks|undecodable-arguments)\.ts$/],
  ["workflows", /^workflows\/warm-repository\.ts$/],
  ["converters", /^temporal\/(encoded-failures|payload-guard|workflow-payloads)\.ts$/],
];

const files = sources(/^(workflows|activities|temporal|worker|client|examples)\/.*\.ts$/);

const importers = new Map<string, Set<string>>();
for (const source of files)
  for (const { to } of importsOf(source))
    importers.set(to, (importers.get(to) ?? new Set()).add(source.path));

const crumbs = files
  .filter(({ path, text }) => text.split("\n").length - 1 < MIN_LINES && (importers.get(path)?.size ?? 0) < 2)
  .map(({ path }) => path);

test("no file is a crumb: each has a second importer, 80 lines or a kind that is one a file", () => {
  expect(files.length).toBeGreaterThan(400);
  expect(crumbs.filter((path) => !ONE_A_FILE.some(([, kind]) => kind.test(path)))).toEqual([]);
});

test("the exceptions are needed", () => {
  expect(ONE_A_FILE.filter(([, kind]) => !crumbs.some((path) => kind.test(path)))).toEqual([]);
});
