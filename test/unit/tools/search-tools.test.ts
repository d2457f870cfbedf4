import { symlink } from "node:fs/promises";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { globToRegExp } from "../../../activities/tools/folder-walk.ts";
import { defaultLimits } from "../../../activities/config/run-policy.ts";
import type { ToolContext } from "../../../activities/tools/tool.ts";
import { callTool, useFakeSandbox, putFile } from "../../support/tool-context.ts";

const sandbox = useFakeSandbox();

const put = (name: string, content: string | Uint8Array) => putFile(sandbox, name, content);
/** What a call shows the model. */
const shown = async (name: string, input: unknown, overrides?: Partial<ToolContext>) =>
  (await callTool(sandbox, name, input, overrides)).text;

describe("glob_files and grep_content", () => {
  it("find by pattern and by content, skip .git and node_modules, and treat names literally", async () => {
    await put("src/a.ts", "const a = 1;\nlet b;\n");
    await put("we ird/n\nl.ts", "let b;\n");
    await put("node_modules/x/i.ts", "let b;\n");
    await put(".git/c.ts", "let b;\n");
    const globbed = await callTool(sandbox, "glob_files", { pattern: "*.ts" });
    expect(globbed.text.split("\n").toSorted()).toEqual(['"we ird/n\\nl.ts"', "src/a.ts"]);
    expect(await shown("glob_files", { pattern: "**/*.js" })).toBe("No file matches **/*.js.");
    const found = await callTool(sandbox, "grep_content", { pattern: "let\\s+b" });
    expect(found.text).toContain("src/a.ts\n2: let b;");
    expect(found.text).toContain('"we ird/n\\nl.ts"\n1: let b;');
    expect(found.text).not.toContain("node_modules");
    expect(await shown("grep_content", { pattern: "-rf zzz" })).toBe("No line matches -rf zzz.");
    expect(await shown("grep_content", { pattern: "(" })).toContain("regular expression");
  });

  it("limit the matches and cut long lines", async () => {
    await put("a.txt", `${"x".repeat(900)}\n`.repeat(20));
    const limits = { ...defaultLimits("grep_content"), maxMatches: 5 };
    const { text } = await callTool(sandbox, "grep_content", { pattern: "x" }, { limits });
    expect(text.match(/^\d+: x{500}…$/gm)).toHaveLength(5);
    expect(text).toContain("more than 5 matches");
  });

  it("refuse paths outside, also through a link", async () => {
    await symlink("/etc", path.join(sandbox.root, "out"));
    for (const [tool, input] of [
      ["glob_files", { pattern: "*", path: "out" }],
      ["grep_content", { pattern: "root", path: "out/passwd" }],
      ["grep_content", { pattern: "root", path: "/etc/passwd" }],
      ["glob_files", { pattern: "../*" }],
    ] as const) {
      expect(await shown(tool, input), tool).toMatch(/outside|inside/);
    }
  });

  it("end the search when the call is aborted", async () => {
    const reason = new Error("interrupt");
    await expect(
      callTool(sandbox, "grep_content", { pattern: "x" }, { signal: AbortSignal.abort(reason) }),
    ).rejects.toBe(reason);
  });
});

it.each([`${"*a".repeat(8)}*b`, "[z-a]"])(
  "a glob without ripgrep %s is given up instead of keeping the worker busy",
  async (pattern) => {
    await put("a".repeat(60), "");
    const { text } = await callTool(sandbox, "glob_files", { pattern });
    expect(text).toContain("use fewer of them");
  },
);

it.each([
  ["*.ts", "a/b/c.ts", true],
  ["*.ts", "a.tsx", false],
  ["src/*.ts", "src/a.ts", true],
  ["src/*.ts", "src/b/a.ts", false],
  ["src/*.ts", "x/src/a.ts", false],
  ["src/**/*.ts", "src/a.ts", true],
  ["src/**/*.ts", "src/b/c/a.ts", true],
  ["/a.ts", "a.ts", true],
  ["**/x", "a/b/x", true],
  ["docs/**", "docs/a/b", true],
  ["*.{md,txt}", "a/b.md", true],
  ["a?c", "abc", true],
  ["a?c", "a/c", false],
  ["[ab].c", "b.c", true],
  ["[!ab].c", "b.c", false],
  ["a+(b).c", "a+(b).c", true],
  ["a\\*", "a*", true],
  ["{a", "{a", true],
])("globToRegExp %s against %s: %s", (glob, name, matches) => {
  expect(globToRegExp(glob).test(name)).toBe(matches);
});
