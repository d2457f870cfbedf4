import { existsSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { agentConfigSchema, toolConfigSchema } from "../../activities/config/agent-config.ts";
import { verbs } from "../../client/command-list.ts";
import { project, sources } from "./sources.ts";

const MAX_AGENTS_LINES = 60;
const MAX_README_LINES = 150;
const textOf = (path: string) => sources(new RegExp(`^${path.replaceAll(".", "\\.")}$`))[0]?.text ?? "";
const readme = textOf("README.md");
const configuration = textOf("docs/configuration.md");
const [settings = ""] = configuration.match(/(?<=```yaml\n)[^]*?(?=```)/) ?? [];

describe("the manual", () => {
  test("names every variable that client and worker read", () => {
    // Between us and our own programs: set for a child, never by a person.
    const internal = ["LONGHAUL_SUPERVISOR", "LONGHAUL_RELAY", "LONGHAUL_CALL"];
    const read = sources(/^(worker|client)\/.*\.ts$/).flatMap(({ text }) => [
      ...(text.match(/\bLONGHAUL_[A-Z_]+\b/g) ?? []),
      ...(text.match(/^ {2}[A-Z]+_[A-Z_]+(?=:)/gm) ?? []).map((name) => name.trim()),
    ]);
    expect(read.length).toBeGreaterThan(20);
    const missing = [...new Set(read)].filter(
      (name) => !internal.includes(name) && !configuration.includes(name),
    );
    expect(missing).toEqual([]);
  });

  test("shows the defaults as they are", () => {
    expect(agentConfigSchema.parse(parse(settings))).toEqual(agentConfigSchema.parse({}));
  });

  test("shows keys that are taken when the marks are removed", () => {
    const all = agentConfigSchema.parse(parse(settings.replaceAll(/^# /gm, "")));
    const shown = (value: object): string[] => Object.keys(value).sort();
    const { shape } = agentConfigSchema;
    expect(shown(all)).toEqual(shown(shape));
    expect(shown(all.context.options)).toEqual(shown(shape.context.unwrap().shape.options.unwrap().shape));
    expect(shown(all.models["acme/coder-1"] ?? {})).toEqual(shown(shape.models.unwrap().valueType.shape));
    const limits = Object.values(all.tools).flatMap((tool) => shown(tool?.limits ?? {}));
    expect([...new Set(limits)].toSorted()).toEqual(shown(toolConfigSchema.shape.limits.unwrap().shape));
  });

  test("names every command", () => {
    const [table = ""] = textOf("docs/commands.md").match(/\n## Commands[^]*?\n## /) ?? [];
    const missing = verbs.map(({ name }) => name).filter((name) => !new RegExp(`\`${name}[ \`]`).test(table));
    expect(missing).toEqual([]);
  });

  test("has an index that names every page", () => {
    const pages = sources(/^docs\/[^/]+\.md$/).map(({ path }) => basename(path));
    expect(pages.length).toBeGreaterThan(5);
    const index = textOf("docs/README.md");
    expect(pages.filter((page) => page !== "README.md" && !index.includes(`](${page})`))).toEqual([]);
  });
});

test(`the README has at most ${MAX_README_LINES} lines`, () => {
  expect(readme.split("\n").length).toBeLessThanOrEqual(MAX_README_LINES);
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
  const named = sources(/^(?!ARCHITECTURE|CHANGELOG)[^/]+\.md$|^docs\/[^/]+\.md$/).flatMap(({ text }) =>
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
