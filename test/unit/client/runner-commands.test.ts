/** Commands of build runners in text that a model or a repository wrote. */
import { execFileSync, spawnSync } from "node:child_process";
import { lstatSync, mkdirSync, readFileSync, readlinkSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { WorkspaceFile } from "../../../activities/store/workspace-pack.ts";
import { createRunnerGuard, isInRunner } from "../../../client/console/runner-commands.ts";
import { diffWorkspaces } from "../../../client/workspace/workspace-diff.ts";
import { emptyFolder } from "../../support/empty-folder.ts";
import { file } from "../../support/workspace-file.ts";

const COMMANDS = [
  "::add-mask::the",
  "::stop-commands::x",
  "::set-output name=a::b",
  "::error file=a.ts,line=1::b",
  "##[add-mask]the",
  "##vso[task.setvariable variable=P]y",
  "##vso[task.complete result=Succeeded;]",
  "##teamcity[buildStatus status='SUCCESS']",
  "##octopus[setVariable name='a']",
  "section_start:1560896352:name",
  "travis_fold:start:x",
];

/** The lines that runners would obey, read as their documentation and sources say. */
function obeyed(text: string): string[] {
  return text.split(/\r\n|[\r\n]/).filter((line) => {
    // oxlint-disable-next-line no-control-regex -- colours
    const plain = line.replace(/\u001b\[[\d;]*m/g, "").replace(/^[\s\p{C}\p{Z}]+/u, "");
    return (
      /^::[a-z-]+( [^:]*)?::/i.test(plain) || /##[a-z-]*\[|section_(start|end):\d|travis_fold:/i.test(plain)
    );
  });
}

const guarded = (text: string) => createRunnerGuard().push(text);

describe("what a runner reads as a command", () => {
  it.each(COMMANDS)("is broken visibly: %s", (command) => {
    for (const front of [
      "",
      "  ",
      "\t",
      "text\n",
      "text\r\n",
      "text\r",
      "\u001b[2m",
      "\n\n\u00a0",
      " \u0085",
      "\u001c\0",
      "\ufeff\u200b",
    ]) {
      const text = `${front}${command}\nmore`;
      expect(obeyed(text)).toHaveLength(1);
      const shown = guarded(text);
      expect(obeyed(shown), JSON.stringify(text)).toEqual([]);
      expect(shown.replaceAll(" ", "")).toBe(text.replaceAll(" ", ""));
    }
  });

  it("is broken in whatever pieces it arrives", () => {
    const part = fc.constantFrom(...COMMANDS, "\n", "\r", " ", ":", "::", "##", "a", "│ ", "[", "\u001b[2m");
    fc.assert(
      fc.property(fc.array(part, { maxLength: 8 }), fc.array(fc.nat(80), { maxLength: 6 }), (parts, cuts) => {
        const text = parts.join("");
        const guard = createRunnerGuard();
        let shown = "";
        let at = 0;
        for (const cut of [...new Set(cuts)].toSorted((a, b) => a - b)) {
          shown += guard.push(text.slice(at, cut));
          at = Math.max(at, cut);
        }
        shown += guard.push(text.slice(at));
        expect(obeyed(shown), JSON.stringify(text)).toEqual([]);
        expect(shown.replaceAll(" ", "")).toBe(text.replaceAll(" ", ""));
      }),
      { numRuns: 3_000 },
    );
  });

  it("is broken in a line that comes after a long beginning", () => {
    const guard = createRunnerGuard();
    const shown = guard.push("x".repeat(5_000)) + guard.push("##vs") + guard.push("o[task.complete]");
    expect(obeyed(shown)).toEqual([]);
    const blanks = createRunnerGuard();
    expect(obeyed(blanks.push(" ".repeat(5_000)) + blanks.push("::add-mask::a"))).toEqual([]);
  });

  it("is looked for in a time that grows with the text alone", () => {
    for (const part of ["\n", "\r", "\r\n", " ", "\u001b[2m", "\u0085", "#", ":", "\u001b"]) {
      const began = performance.now();
      guarded(part.repeat(100_000));
      expect(performance.now() - began, JSON.stringify(part)).toBeLessThan(10_000);
    }
  });

  it.each(["std::path::Path", "a ## heading", "## Heading", "# [link](x)", "12:30::5", '{"a":"::b"}'])(
    "leaves %s alone",
    (text) => {
      expect(guarded(text)).toBe(text);
    },
  );
});

it.each([
  [{ GITHUB_ACTIONS: "true" }, true],
  [{ TF_BUILD: "True" }, true],
  [{ TEAMCITY_VERSION: "2026.1" }, true],
  [{ GITLAB_CI: "true" }, true],
  [{ CI: "1" }, true],
  [{ CI: "false" }, false],
  [{ CI: "" }, false],
  [{}, false],
])("a runner is known by its variables: %j", (environment, expected) => {
  expect(isInRunner(environment)).toBe(expected);
});

it("both streams are guarded in a build, and JSON is unchanged", () => {
  const script = `
    import { processOutput } from ${JSON.stringify(new URL("../../../client/console/output.ts", import.meta.url).href)};
    const output = processOutput((text) => text, true);
    output.result("::add-mask::a\\n");
    output.json({ text: "::add-mask::a ##vso[x]" });
    output.show("::add"); output.show("-mask::a\\n"); output.note("##vso[x]y\\n");
    console.error("end");`;
  const { stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", script], {
    encoding: "utf8",
  });
  expect(stdout).toBe(`: :add-mask::a\n{"text":"::add-mask::a ##vso[x]"}\n`);
  expect(obeyed(stderr)).toEqual([]);
});

type Content = Extract<WorkspaceFile, { kind: "file" | "link" }>;

/** Applies the patch to files on disk, as `longhaul diff ID | git apply` does. @returns the files' bytes, links' targets */
function applied(before: readonly Content[], patch: string, paths: readonly string[]) {
  const folder = emptyFolder();
  for (const entry of before) {
    mkdirSync(dirname(join(folder, entry.path)), { recursive: true });
    if (entry.kind === "link") symlinkSync(entry.target, join(folder, entry.path));
    else writeFileSync(join(folder, entry.path), entry.bytes);
  }
  execFileSync("git", ["init", "-q"], { cwd: folder });
  if (patch !== "") execFileSync("git", ["apply", "-"], { cwd: folder, input: patch, stdio: "pipe" });
  return paths.map((path) => {
    const place = join(folder, path);
    const found = lstatSync(place, { throwIfNoEntry: false });
    if (found === undefined) return undefined;
    return found.isSymbolicLink() ? readlinkSync(place) : readFileSync(place).toString("latin1");
  });
}

describe("a patch that a runner reads", () => {
  const line = fc.oneof(
    fc.constantFrom(...COMMANDS, ...COMMANDS.map((command) => `  ${command}`), "one", "two", "", "\t::a::b"),
    fc.constantFrom("text\r::add-mask::the", "x ##vso[task.complete]y", "ü", "# [link](x)"),
  );
  const text = fc
    .tuple(fc.array(line, { maxLength: 12 }), fc.boolean())
    .map(([lines, ends]) => lines.join("\n") + (ends ? "\n" : ""));
  const PATHS = ["a.txt", "b/::add-mask::x", 'c "##vso[task.complete]" d', "section_start:1:e", "ü ##[f]"];
  const content = (path: string) =>
    fc.option(
      fc.oneof(
        { weight: 4, arbitrary: text.map((value): Content => file(path, value)) },
        fc
          .constantFrom("##vso[x]", "::add-mask::x", "a.txt")
          .map((target): Content => ({ path, mode: 0o777, kind: "link", target })),
      ),
      { nil: undefined },
    );
  const state = fc.tuple(...PATHS.map(content)).map((all) => all.filter((one) => one !== undefined));

  it("has nothing that a runner obeys, and git makes the same files of it, byte for byte", () => {
    fc.assert(
      fc.property(state, state, (before, after) => {
        const { patch } = diffWorkspaces(before, after, { binaries: "bytes", isRead: true });
        expect(obeyed(patch)).toEqual([]);
        expect(guarded(patch)).toBe(patch);
        const contents = new Map(
          after.map((one) => [
            one.path,
            one.kind === "link" ? one.target : Buffer.from(one.bytes).toString("latin1"),
          ]),
        );
        expect(applied(before, patch, PATHS)).toEqual(PATHS.map((path) => contents.get(path)));
      }),
      { numRuns: 40 },
    );
  }, 120_000);

  it("is the usual text for all other files", () => {
    const before = [file("a.txt", "one\n"), file("b.txt", "one\n")];
    const after = [file("a.txt", "two\n"), file("b.txt", "::error::two\n")];
    const usual = diffWorkspaces(before, after, { binaries: "bytes" });
    // An added line begins with its sign, which no runner takes for a command.
    expect(diffWorkspaces(before, after, { binaries: "bytes", isRead: true })).toEqual(usual);
    const read = diffWorkspaces([], [...after, file("c.txt", " ##[error]\n")], {
      binaries: "bytes",
      isRead: true,
    });
    expect(read.inert).toEqual(["c.txt"]);
    expect(read.patch).toContain("+two\n");
    expect(read.patch).toContain("GIT binary patch");
  });
});
