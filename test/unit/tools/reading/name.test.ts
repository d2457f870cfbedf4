import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { createToolRegistry, toolRegistry } from "../../../../activities/tools/index.ts";
import { readName } from "../../../../activities/tools/reading/read-call.ts";
import { typedTool } from "../../../../activities/tools/tool.ts";

const named = (name: string) =>
  typedTool({
    name,
    description: "",
    input: z.object({}),
    readOnly: true,
    about: () => "",
    run: async () => ({ text: "" }),
  });

const registry = createToolRegistry([
  ...toolRegistry.values(),
  ...["github__create_issue", "notes__read-file", "functions__list", "two__a_b", "two__ab"].map(named),
]);
const NAMES = [...registry.keys()];

describe("a tool's name", () => {
  it.each([
    ["bash<|channel|>commentary", "bash"],
    ["bash<|constrain|>json", "bash"],
    ["bash<｜tool▁sep｜>", "bash"],
    ["bash</tool_call>", "bash"],
    ["functions.bash", "bash"],
    ["functions.bash:0", "bash"],
    ["functions.bash<|channel|>commentary", "bash"],
    ["default_api:read_file", "read_file"],
    ["default_api.read_file", "read_file"],
    ["tool.bash", "bash"],
    ["tools.bash", "bash"],
    ["to=functions.bash", "bash"],
    ["mcp__github__create_issue", "github__create_issue"],
    ["Bash", "bash"],
    ["BASH", "bash"],
    ["ReadFile", "read_file"],
    ["read-file", "read_file"],
    ["readFile", "read_file"],
    ["github.create_issue", "github__create_issue"],
    ["GitHub__Create-Issue", "github__create_issue"],
    [" bash ", "bash"],
    ["`bash`", "bash"],
    ["bash()", "bash"],
    ["execute_command", "execute_command"],
    ["functions.execute_command", "execute_command"],
    ["functions__list", "functions__list"],
    ["functions.list", "functions__list"],
  ])("%s means %s", (written, meant) => {
    expect(readName(registry, written)).toBe(meant);
  });

  it.each([
    "",
    "bas",
    "create_issue",
    "two__A_B",
    "TWO__AB",
    "<|channel|>",
    "functions.",
    "constructor",
    "__proto__",
    "rm",
    "bash_",
  ])("%s fits no tool, or several, and stays", (written) => {
    const meant = readName(registry, written);
    expect(meant === written || meant === "bash").toBe(true);
    if (written !== "bash_") expect(meant).toBe(written);
  });

  it("is untouched where a tool has it, whatever else looks like it", () => {
    for (const name of NAMES) expect(readName(registry, name)).toBe(name);
  });

  it("leads to its tool through any prefix, case, mark and separator, and never elsewhere", () => {
    const prefix = fc.constantFrom("", "functions.", "tool.", "default_api:", "tools/", "functions.tools.");
    const mark = fc.constantFrom("", "<|channel|>commentary", "<|end|>", "()", ":3", "<x");
    const unique = NAMES.filter((name) => !name.startsWith("two__"));
    const change = fc.constantFrom(
      (name: string) => name,
      (name: string) => name.toUpperCase(),
      (name: string) => name.replaceAll("_", "-"),
      (name: string) => name.replaceAll(/_+(.)/g, (_, letter: string) => letter.toUpperCase()),
    );
    fc.assert(
      fc.property(prefix, fc.constantFrom(...unique), change, mark, (before, name, changed, after) => {
        expect(readName(registry, `${before}${changed(name)}${after}`)).toBe(name);
      }),
      { seed: 35, numRuns: 5_000 },
    );
    fc.assert(
      fc.property(fc.string({ maxLength: 20 }), (written) => {
        const meant = readName(registry, written);
        const letters = (name: string) => name.toLowerCase().replaceAll(/[^a-z0-9]/g, "");
        if (meant !== written) expect(letters(written)).toContain(letters(meant));
      }),
      { seed: 35, numRuns: 5_000 },
    );
  });
});
