import { expect, test } from "vitest";
import { closingLine, slowestFiles } from "../../support/closing-line.ts";

test("the closing line counts what passed and failed", () => {
  expect(closingLine({ passed: 12, failed: 0, skipped: 0 })).toBe("12 passed, 0 failed");
});

test("skipped tests are listed if there are any", () => {
  expect(closingLine({ passed: 12, failed: 1, skipped: 3 })).toBe("12 passed, 1 failed, 3 skipped");
});

test("the ten slowest files are listed, slowest first", () => {
  const files = Array.from({ length: 12 }, (_, at) => ({ file: `${at}.test.ts`, ms: at * 1_000 }));
  const shown = slowestFiles(files);
  expect(shown).toHaveLength(10);
  expect(shown[0]).toBe("   11.0 s  11.test.ts");
});
