import { expect, test } from "vitest";
import { closingLine } from "../../support/closing-line.ts";

test("the closing line counts what passed and failed", () => {
  expect(closingLine({ passed: 12, failed: 0, skipped: 0 })).toBe("12 passed, 0 failed");
});

test("skipped tests are told where there are any", () => {
  expect(closingLine({ passed: 12, failed: 1, skipped: 3 })).toBe("12 passed, 1 failed, 3 skipped");
});
