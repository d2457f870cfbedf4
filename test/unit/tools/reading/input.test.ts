import { describe, expect, it } from "vitest";
import { read } from "../../../support/read-input.ts";

describe("the input of our own tools", () => {
  it.each<[string, string, object, object]>([
    [
      "null for an optional field",
      "bash",
      { command: "ls", cwd: null, timeout_seconds: null },
      { command: "ls" },
    ],
    [
      "an empty text for an optional field",
      "grep_content",
      { pattern: "x", path: "", include: "" },
      { pattern: "x" },
    ],
    [
      "a number as text",
      "bash",
      { command: "ls", timeout_seconds: "30" },
      { command: "ls", timeout_seconds: 30 },
    ],
    ["a whole number with a point", "read_file", { path: "a", limit: "20.0" }, { path: "a", limit: 20 }],
    [
      "yes or no as text",
      "bash",
      { command: "ls", background: "False" },
      { command: "ls", background: false },
    ],
    [
      "yes or no as a number",
      "edit_file",
      { path: "a", old_string: "b", new_string: "c", replace_all: 1 },
      { path: "a", old_string: "b", new_string: "c", replace_all: true },
    ],
    [
      "a number where a text is asked",
      "write_file",
      { path: 30, content: 42 },
      { path: "30", content: "42" },
    ],
    ["a line 0", "read_file", { path: "a", offset: 0, limit: 0 }, { path: "a" }],
    ["a time limit of 0", "bash", { command: "ls", timeout_seconds: 0 }, { command: "ls" }],
    ["the first byte", "bash_output", { id: "s1c0", offset: 0 }, { id: "s1c0", offset: 0 }],
    ["file_path", "read_file", { file_path: "a.ts" }, { path: "a.ts" }],
    ["filePath", "read_file", { filePath: "a.ts" }, { path: "a.ts" }],
    ["filename", "write_file", { filename: "a", contents: "b" }, { path: "a", content: "b" }],
    ["the same path under two names", "read_file", { file_path: "a", filename: "a" }, { path: "a" }],
    ["cmd and workdir", "bash", { cmd: "ls", workdir: "src" }, { command: "ls", cwd: "src" }],
    [
      "run_in_background",
      "bash",
      { command: "ls", run_in_background: true },
      { command: "ls", background: true },
    ],
    [
      "oldString",
      "edit_file",
      { filePath: "a", oldString: "b", newString: "", replaceAll: false },
      { path: "a", old_string: "b", new_string: "", replace_all: false },
    ],
    ["a null beside another name", "read_file", { path: null, file_path: "a" }, { path: "a" }],
    [
      "glob beside a pattern",
      "grep_content",
      { pattern: "x", glob: "*.ts" },
      { pattern: "x", include: "*.ts" },
    ],
    ["glob as the pattern", "glob_files", { glob: "*.ts" }, { pattern: "*.ts" }],
    [
      "a list as text",
      "todo",
      { items: '[{"content":"a","status":"pending"}]' },
      { items: [{ content: "a", status: "pending" }] },
    ],
    [
      "another spelling of a choice",
      "todo",
      {
        todos: [
          { task: "a", status: "In Progress" },
          { content: "b", status: "COMPLETED" },
        ],
      },
      {
        items: [
          { content: "a", status: "in_progress" },
          { content: "b", status: "completed" },
        ],
      },
    ],
    [
      "the arguments in a field of their own",
      "bash",
      { name: "bash", arguments: { command: "ls" } },
      { command: "ls" },
    ],
    ["these as text", "bash", { arguments: '{"command":"ls"}' }, { command: "ls" }],
    [
      "options as labels",
      "ask_user",
      { question: "Which?", options: ["a", "b"] },
      { question: "Which?", options: ["a", "b"] },
    ],
  ])("is read without a remark where it has one plain meaning: %s", (_, name, given, input) => {
    expect(read(name, given)).toEqual({ input, remarks: [], refusals: [], fits: true });
  });

  it.each<[string, string, object, object, string[]]>([
    [
      "a field that the tool has not",
      "bash",
      { command: "ls", description: "Lists" },
      { command: "ls" },
      ["description was left out: bash has no such argument"],
    ],
    [
      "a field inside a list",
      "todo",
      {
        items: [
          { content: "a", status: "pending", id: "1" },
          { content: "b", status: "pending", id: "2" },
        ],
      },
      {
        items: [
          { content: "a", status: "pending" },
          { content: "b", status: "pending" },
        ],
      },
      ["items.id was left out: todo has no such argument"],
    ],
    [
      "a time limit in milliseconds",
      "bash",
      { command: "ls", timeout: 120_000 },
      { command: "ls", timeout_seconds: 120 },
      ["timeout 120000 was read as 120 seconds"],
    ],
    [
      "one that says so",
      "bash",
      { command: "ls", timeout_ms: 500 },
      { command: "ls", timeout_seconds: 0.5 },
      ["timeout_ms 500 was read as 0.5 seconds"],
    ],
    [
      "one with a unit",
      "bash",
      { command: "ls", timeout: "2m" },
      { command: "ls", timeout_seconds: 120 },
      ["timeout 2m was read as 120 seconds"],
    ],
    [
      "another name beside ours",
      "read_file",
      { path: "a", file_path: "b" },
      { path: "a" },
      ["file_path was left out: read_file has no such argument"],
    ],
  ])(
    "is read with a remark where something is left out or converted: %s",
    (_, name, given, input, remarks) => {
      expect(read(name, given)).toEqual({ input, remarks, refusals: [], fits: true });
    },
  );

  it("takes a plain time limit in seconds", () => {
    expect(read("bash", { command: "ls", timeout: 300 })).toMatchObject({
      input: { timeout_seconds: 300 },
      remarks: [],
    });
    expect(read("ask_user", { question: "a", timeout: 86_400 })).toMatchObject({
      input: { timeout_seconds: 86_400 },
    });
  });

  it.each<[string, string, object, string]>([
    [
      "to append",
      "write_file",
      { path: "a", content: "b", append: true },
      "write_file has no append, and would do something else without it.",
    ],
    [
      "to append, as a mode",
      "write_file",
      { path: "a", content: "b", mode: "append" },
      "write_file has no mode",
    ],
    ["another environment", "bash", { command: "ls", env: { CI: "1" } }, "bash has no env"],
    [
      "two paths that differ",
      "read_file",
      { file_path: "a", filename: "b" },
      "file_path and filename both mean path, and differ.",
    ],
  ])("is refused where the call would do something else: %s", (_, name, given, refusal) => {
    expect(read(name, given).refusals.join()).toContain(refusal);
  });

  it("keeps a wrong value for the schema to refuse", () => {
    for (const given of [
      { command: {} },
      { command: null },
      { command: "ls", timeout_seconds: "soon" },
      { command: "ls", background: "perhaps" },
      {},
    ])
      expect(read("bash", given).fits).toBe(false);
    expect(read("read_file", { path: "a", offset: "1.5" }).fits).toBe(false);
    expect(read("read_file", { path: ["a"] }).fits).toBe(false);
    expect(read("todo", { items: "buy milk" }).fits).toBe(false);
  });

  it("knows no field of an object's prototype", () => {
    expect(
      read("bash", JSON.parse('{"command":"ls","__proto__":{"cwd":"x"},"constructor":1}')),
    ).toMatchObject({
      input: { command: "ls" },
      remarks: [expect.stringContaining("__proto__"), expect.stringContaining("constructor")],
    });
  });
});
