import { describe, expect, it } from "vitest";
import { errorsIn, filesIn, todoIn } from "../../../activities/compaction/session-facts.ts";
import { checkSummary, lostFrom } from "../../../activities/compaction/summary-check.ts";
import {
  excerpt,
  isSameItem,
  parseChecklist,
  parseFiles,
  parseSections,
  renderFiles,
  renderSummary,
  SECTIONS,
  type Sections,
} from "../../../activities/compaction/summary-document.ts";
import { calls, result, rowsOf, user } from "../../support/rows.ts";

const sections = (fill: Partial<Sections> = {}): Sections =>
  ({ ...Object.fromEntries(SECTIONS.map((section) => [section, "None."])), ...fill }) as Sections;

describe("a summary's sections", () => {
  it("are parsed as they were written", () => {
    const written = sections({ "Current State": "It runs.\n- twice", "Errors & Resolutions": "E1 → solved" });
    expect(parseSections(renderSummary(3, written))).toEqual(written);
  });

  it("follow the compactions that the summary incorporates", () => {
    const first = renderSummary(1, sections());
    expect(first).not.toContain("Incorporates");
    const second = renderSummary(2, sections(), first);
    expect(second).toMatch(
      /^# Session Summary \(Compaction Round 2\)\n\nIncorporates the summaries of rounds 1\.\n\n## Orig/,
    );
    const third = renderSummary(3, sections(), second);
    expect(third).toContain("\nIncorporates the summaries of rounds 1–2.\n");
    // Round 4 was undone.
    const fifth = renderSummary(5, sections(), third);
    expect(fifth).toContain("\nIncorporates the summaries of rounds 1–3.\n");
    expect(renderSummary(6, sections(), fifth)).toContain("\nIncorporates the summaries of rounds 1–3, 5.\n");
    expect(parseSections(fifth)).toEqual(sections());
  });

  it.each(["## Current State", "**Current State**", "# 4. Current State:", "### current state"])(
    "are found under %s",
    (heading) => {
      expect(parseSections(`${heading}\nfine`)).toEqual({ "Current State": "fine" });
    },
  );

  it("are not found in a sentence that names them", () => {
    expect(parseSections("The Current State is fine")).toEqual({});
  });
});

describe("the file table", () => {
  const files = ["src/a.ts", "src/b.ts", "test/a.test.ts"].map((path) => ({
    path,
    action: "written",
    description: "d".repeat(50),
  }));

  it.each([10_000, 200, 20])("lists every path even within %i characters", (maxChars) => {
    const table = renderFiles(files, maxChars);
    expect(parseFiles(table).map((file) => file.path)).toEqual(files.map((file) => file.path));
  });

  it("is shorter without descriptions, and shorter still by folder", () => {
    const sizes = [10_000, 200, 20].map((maxChars) => renderFiles(files, maxChars).length);
    expect(sizes).toEqual(sizes.toSorted((a, b) => b - a));
    expect(renderFiles(files, 20)).toContain("src/{a.ts,b.ts}");
  });

  it("survives special characters in a description", () => {
    const table = renderFiles([{ path: "a", action: "edited", description: "x | y\nz" }], 1_000);
    expect(parseFiles(table)).toEqual([{ path: "a", action: "edited", description: "x y z" }]);
  });
});

it.each([
  ["add the importer", "Add the importer.", true],
  ["write tests for the importer", "write more tests for the importer", true],
  ["implement chapter 3 of the importer", "implement chapter 4 of the importer", false],
  ["fix src/a.ts as asked", "fix src/b.ts as asked", false],
  ["add the importer", "remove the exporter", false],
])("isSameItem %s / %s: %s", (first, second, same) => {
  expect(isSameItem(first, second)).toBe(same);
});

describe("facts that code reads from a transcript", () => {
  const patch =
    "*** Begin Patch\n*** Add File: new.ts\n+x\n*** Delete File: old.ts\n*** Update File: was.ts\n*** Move to: is.ts\n@@\n-a\n+b\n*** End Patch";
  const rows = rowsOf([
    user("go"),
    calls(
      "",
      { id: "1", name: "write_file", input: { path: "/workspace/src/a.ts", content: "1\n2\n3" } },
      { id: "2", name: "edit_file", input: { path: "src/a.ts", old_string: "1", new_string: "one" } },
      { id: "3", name: "apply_patch", input: { patch } },
      { id: "4", name: "write_file", input: { path: "never.ts", content: "" } },
      { id: "5", name: "bash", input: { command: "npm test" } },
      { id: "6", name: "todo", input: { items: ["one", { text: "two", status: "done" }] } },
    ),
    result("1", "ok", "completed", "write_file"),
    result("2", "ok", "completed", "edit_file"),
    result("3", "ok", "completed", "apply_patch"),
    result("4", "read-only", "error", "write_file"),
    result("5", "1 failed", "error"),
    result("6", "ok", "completed", "todo"),
  ]);

  it("contain each changed file once, and none of a failed call", () => {
    expect(filesIn(rows).map((file) => `${file.action} ${file.path}`)).toEqual([
      "written src/a.ts",
      "written new.ts",
      "deleted old.ts",
      "edited was.ts",
      "moved here is.ts",
    ]);
  });

  it("contain the newest todo list and the newest errors", () => {
    expect(todoIn(rows)).toEqual([
      { text: "one", done: false },
      { text: "two", done: true },
    ]);
    expect(errorsIn(rows, 1)).toEqual(["- bash npm test: error: 1 failed"]);
  });
});

describe("checkSummary", () => {
  const summary = renderSummary(2, sections());
  const check = { summary, previous: undefined, replacedTokens: 5_000, beforeTokens: 9_000, maxTokens: 800 };

  it("accepts a smaller, complete summary", () => {
    expect(checkSummary(check)).toBeUndefined();
  });

  it.each([
    ["inflated", { replacedTokens: 20 }],
    ["over-target", { maxTokens: 10 }],
    ["too-little-saved", { beforeTokens: 100_000 }],
    ["missing-section", { summary: summary.replace("## Pending Work", "") }],
  ])("refuses a summary that is %s", (reason, change) => {
    expect(checkSummary({ ...check, ...change })?.reason).toBe(reason);
  });

  it.each([
    ["lost-path", { "Completed Work": "| a.ts | written | |" }],
    ["lost-item", { "Pending Work": "- [ ] add the importer" }],
    ["lost-rule", { "Original Task": "Task\nSaid later by the user, oldest first:\n- Use tabs." }],
  ])("refuses a summary that lost facts: %s", (reason, fill) => {
    const previous = renderSummary(1, sections(fill));
    expect(checkSummary({ ...check, previous })?.reason).toBe(reason);
    expect(lostFrom(previous, renderSummary(2, sections(fill)))).toBeUndefined();
  });

  it("allows a closed item to go", () => {
    const previous = renderSummary(1, sections({ "Pending Work": "- [x] add the importer" }));
    expect(lostFrom(previous, summary)).toBeUndefined();
  });
});

it("excerpt cuts on a code point and marks the cut", () => {
  expect(excerpt("ab😀cd", 4)).toBe("ab…");
  expect(excerpt("abc", 3)).toBe("abc");
  expect(parseChecklist("- [ ] a\n- [x] b\n* c\nNone.\n- None.")).toHaveLength(3);
});
