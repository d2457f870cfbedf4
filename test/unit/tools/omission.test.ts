import { expect, it } from "vitest";
import { omissionLine } from "../../../activities/tools/text-match.ts";

it.each([
  "// ... rest of the code unchanged ...",
  "// ... existing code ...",
  "  # ... existing code ...",
  "/* ... remaining methods ... */",
  "<!-- ... rest of the file ... -->",
  "-- … other functions …",
  "* ... other methods ...",
  "(rest of methods ...)",
  "[... existing code ...]",
  "...rest of the implementation",
  "// ... (rest of the code remains the same)",
  "// rest of the code remains unchanged",
  "# The rest of the file stays the same.",
  "// existing imports unchanged",
  "# existing methods, unchanged",
  "// unchanged code",
  "/* unchanged */",
  "// remaining code as before",
  "# ... other tests, imports and helpers ...",
  "// ... previous code omitted for brevity ...",
  "// Rest of code omitted",
])("%s stands for code that was left out", (line) => {
  expect(omissionLine(`a\n${line}\nb`, "")).toBe(line.trim());
  expect(omissionLine(`a\n${line}\nb`, `x\n${line}\n`)).toBeUndefined();
});

it.each([
  "Existing tests are unchanged.",
  "# unchanged files are skipped",
  "* Existing tests are unchanged.",
  "- The rest of the API is unchanged.",
  "The remaining code is the same as before.",
  "// other columns stay unchanged if the update fails",
  "# previous value is returned unchanged",
  "Loading existing files...",
  'print("Loading existing code...")',
  "// rest of the line",
  "# existing methods",
  "// same file",
  "const { a, ...rest } = before;",
  "function f(...other) {}",
  "...",
  "# ...",
  "# Wait for the remaining tests to finish...",
  "// Skips the rest of the file, unchanged lines included",
  "and so on, with the other parts of the story ...",
  "Other people have tried this before ...",
  "## Unchanged behaviour",
])("%s is text of its own", (line) => {
  expect(omissionLine(`a\n${line}\nb`, "")).toBeUndefined();
});

it("a long line is decided at once", () => {
  const started = performance.now();
  for (const word of ["code ", "unchanged ", "the of all ", "and, "])
    omissionLine(`// ... ${word.repeat(20)}x`.slice(0, 118), "");
  expect(performance.now() - started).toBeLessThan(500);
});
