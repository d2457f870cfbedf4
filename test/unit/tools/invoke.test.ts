import { describe, expect, it } from "vitest";
import { z } from "zod";
import { toolsConfigSchema } from "../../../activities/config/agent-config.ts";
import { defaultLimits } from "../../../activities/config/run-policy.ts";
import { SandboxLost } from "../../../activities/sandbox/sandbox.ts";
import { ToolFailure, typedTool, type ToolContext, type ToolResult } from "../../../activities/tools/tool.ts";
import { createToolRegistry, findTool, toolRegistry, toolSpecs } from "../../../activities/tools/index.ts";
import {
  aboutCall,
  invokeTool,
  type InvokedTool,
  type InvokeOptions,
} from "../../../activities/tools/invoke.ts";
import { callTool, createFakeMemory, useFakeSandbox } from "../../support/tool-context.ts";

const sandbox = useFakeSandbox();

const context: ToolContext = {
  callKey: "s1c0",
  resumed: false,
  sandbox: async () => sandbox,
  limits: defaultLimits("probe"),
  signal: new AbortController().signal,
  memory: createFakeMemory(),
  maskWindow: (text, from, to) => text.slice(from, to),
  onProgress: () => {},
};

/** The result of a call of a tool that does this. */
function invoked(
  run: () => Promise<ToolResult>,
  more: Partial<ToolContext> = {},
  options: InvokeOptions = {},
): Promise<InvokedTool> {
  const tool = typedTool({
    name: "probe",
    description: "For the test.",
    input: z.strictObject({}),
    readOnly: true,
    about: () => "probe",
    run,
  });
  const called = { name: "probe", input: {} };
  return invokeTool(createToolRegistry([tool]), called, { ...context, ...more }, options);
}

const fieldDescriptions = ({ properties }: Record<string, unknown>): string[] =>
  Object.values(properties as Record<string, { description?: string }>).map(
    (field) => field.description ?? "",
  );

describe("tool registry", () => {
  it("shows the model the same schemas as before", () => {
    expect(toolSpecs()).toMatchSnapshot();
  });

  it("can be configured, tool by tool", () => {
    expect(Object.keys(toolsConfigSchema.shape)).toEqual(["parallel", ...toolRegistry.keys()]);
  });

  it("describes every field of every tool, unless its name says all", () => {
    const plain = new Set(
      "command cwd path id content text rows cols new_string replace_all limit".split(" "),
    );
    for (const { name, inputSchema } of toolSpecs()) {
      for (const [field, schema] of Object.entries(
        inputSchema["properties"] as Record<string, { description?: string }>,
      )) {
        if (!plain.has(field)) expect(schema.description, `${name}.${field}`).toBeTruthy();
      }
    }
  });

  it("refuses unknown fields, and limits that the shown schema leaves out", () => {
    for (const { name, input } of toolRegistry.values())
      expect(JSON.stringify(z.toJSONSchema(input, { io: "input" })), name).toContain(
        '"additionalProperties":false',
      );
    expect(toolRegistry.get("bash")?.input.safeParse({ command: "" }).success).toBe(false);
    expect(toolRegistry.get("read_file")?.input.safeParse({ path: "a", offset: 0 }).success).toBe(false);
  });

  it("shows no example that a small model would use as a value", () => {
    for (const { name, description, inputSchema } of toolSpecs()) {
      const words = [description, ...fieldDescriptions(inputSchema)].join("\n");
      expect(words, name).not.toMatch(/such as|for example|e\.g\.|\bs\d+c\d+\b/i);
      // What looks like an argument: a quoted word, a file's name with its ending, a glob.
      expect(words, name).not.toMatch(/"|\B'\w|\b\w+\.(?:ts|js|md|txt)\b|\*\.|\*\*\//);
    }
  });

  it("runs execute_command as bash, and shows it once", async () => {
    expect(findTool(toolRegistry, "execute_command")).toBe(findTool(toolRegistry, "bash"));
    expect(toolSpecs().filter(({ name }) => name === "execute_command")).toEqual([]);
    expect(await callTool(sandbox, "execute_command", { command: "echo hi" })).toMatchObject({ text: "hi" });
  });

  it("takes limits from the configuration, and never more than 120,000 characters", () => {
    expect(defaultLimits("bash")).toMatchObject({
      timeoutMs: 60_000,
      maxTimeoutMs: 600_000,
      maxChars: 30_000,
    });
    expect(defaultLimits("bash", { timeout: 700_000, limits: { maxChars: 999_999 } })).toMatchObject({
      timeoutMs: 700_000,
      maxTimeoutMs: 700_000,
      maxChars: 120_000,
    });
  });
});

describe("invokeTool", () => {
  it("answers an unknown tool with the existing names, nearest first", { tags: ["R36"] }, async () => {
    const result = await callTool(sandbox, "read_fil", {});
    expect(result.outcome).toBe("error");
    expect(result.text).toMatch(/no tool "read_fil"\. Tools: read_file, /);
    expect((await callTool(sandbox, "shell<|channel|>", {})).text).toContain('no tool "shell<|channel|>"');
    expect(await callTool(sandbox, "constructor", {})).toMatchObject({ outcome: "error" });
  });

  it.each([
    [
      "text that is not JSON",
      '{"command": "ls',
      "not valid JSON: line 1, column 13: the text ends inside a string",
    ],
    ["a wrong type", { command: {} }, "command: Invalid input: expected string"],
    ["a missing field", {}, "command: Invalid input"],
    ["a field too many besides", { shell: "zsh" }, "- shell was left out: bash has no such argument"],
    ["one that it would do something else without", { command: "ls", env: { A: "b" } }, "bash has no env"],
    ["nothing", undefined, "expected object"],
    ["a list", [], "expected object"],
  ])(
    "answers %s with the field and the shape of a right call",
    { tags: ["R35"] },
    async (_what, input, words) => {
      const result = await callTool(sandbox, "bash", input);
      expect(result.outcome).toBe("error");
      expect(result.text).toContain(words);
      expect(result.text).toContain('{"command": string, "timeout_seconds"?: number');
      expect(sandbox.started).toEqual([]);
    },
  );

  it("runs a call that is written otherwise, and says in its result what was left out", async () => {
    const written = '{}{"cmd": "echo \'a\nb\'", "timeout_seconds": "5", "cwd": null, "why": "to see"}';
    expect(await callTool(sandbox, "functions.Bash<|channel|>commentary", written)).toMatchObject({
      outcome: "completed",
      text: "a\nb\n[why was left out: bash has no such argument]",
    });
  });

  it("turns a tool's own failure, and a fault in its code, into a result", async () => {
    const refused = await invoked(() => Promise.reject(new ToolFailure("too big: take less")));
    expect(refused).toMatchObject({ outcome: "error", text: "too big: take less" });
    const fault = await invoked(() => Promise.reject(new TypeError("x is undefined")));
    expect(fault.outcome).toBe("error");
    expect(fault.text).toContain("because of a bug in the tool");
  });

  it("passes on a lost sandbox, an abort and a lost database", async () => {
    for (const error of [
      new SandboxLost("gone"),
      new DOMException("stop", "AbortError"),
      new Error("connection terminated"),
    ])
      await expect(invoked(() => Promise.reject(error))).rejects.toBe(error);
  });

  it("bounds every result and stores the whole", async () => {
    const result = await invoked(async () => ({ text: "é".repeat(500_000) }));
    expect(result.truncated).toBe(true);
    expect(result.text.length).toBeLessThanOrEqual(120_000);
    expect(result.text).toContain('read_output handle="s1c0"');
    let whole = "";
    for await (const piece of result.whole?.pieces() ?? []) whole += piece;
    expect(whole.length).toBe(500_000);
  });

  it("cleans before it cuts, so that no half of a secret remains at the edge", async () => {
    const secret = "topsecretvalue".repeat(20);
    const text = secret.repeat(1_000);
    const limits = { ...defaultLimits("probe"), maxChars: 1_000 };
    const clean = (given: string) => given.replaceAll(secret, "[masked]");
    const result = await invoked(async () => ({ text }), { limits }, { clean });
    expect(result.text).not.toContain("topsecret");
  });

  it.each([
    [{ text: "" }, "completed"],
    [{ text: "", isError: true }, "error"],
    [{ text: "", interrupted: true }, "interrupted"],
    [{ text: "", unknown: true }, "unknown"],
  ])("reports %o as %s", async (result, outcome) => {
    expect(await invoked(async () => result)).toMatchObject({ outcome });
  });
});

it("aboutCall describes a call in one line of at most 60 characters, even an invalid one", () => {
  const about = (name: string, input: unknown): string => aboutCall(toolRegistry, { name, input });
  expect(about("bash", { command: "npm test\nnpm run lint" })).toBe("npm test");
  expect(about("read_file", { path: "src/a.ts" })).toBe("src/a.ts");
  expect(
    about("apply_patch", {
      patch: "*** Begin Patch\n*** Delete File: a\n*** Delete File: b\n*** End Patch",
    }),
  ).toBe("a, b");
  expect(
    about("todo", {
      items: [
        { content: "x", status: "completed" },
        { content: "y", status: "in_progress" },
      ],
    }),
  ).toBe("1/2 done: y");
  expect(about("nope", { a: "b\n".repeat(100) }).length).toBeLessThanOrEqual(60);
  expect(about("bash", "{bad\njson")).toBe("{bad json");
  expect(about("bash", undefined)).toBe("");
  expect(about("bash", { command: `echo ${"😀".repeat(50)}` }).isWellFormed()).toBe(true);
});
