import { expect, it } from "vitest";
import { bestAttempt, isTestPath, type TaskAttempt } from "../../../activities/contract/attempts.ts";

const attempt = (number: number, more: Partial<TaskAttempt> = {}): TaskAttempt => ({
  sessionId: `a-${number}`,
  number,
  outcome: "passed",
  changedLines: 10,
  costUsd: 1,
  ...more,
});

const numberOf = (...attempts: readonly TaskAttempt[]) => bestAttempt(attempts)?.number;

it("prefers passed to changed checks, these to failed, and that to what could not be run", () => {
  const all = (["unavailable", "failed", "changed-checks", "passed"] as const).map((outcome, place) =>
    attempt(place + 1, { outcome, costUsd: place }),
  );
  expect(numberOf(...all)).toBe(4);
  expect(numberOf(...all.slice(0, 3))).toBe(3);
  expect(numberOf(...all.slice(0, 2))).toBe(2);
  expect(bestAttempt(all.slice(0, 1))).toMatchObject({ number: 1, isUnverified: true });
});

it("then takes the larger result, the fewer lines, the lower cost, the lower number", () => {
  expect(numberOf(attempt(1, { result: 2 }), attempt(2, { result: 10, changedLines: 500 }))).toBe(2);
  expect(numberOf(attempt(1, { result: -1 }), attempt(2))).toBe(1);
  expect(numberOf(attempt(1), attempt(2, { changedLines: 9, costUsd: 5 }))).toBe(2);
  expect(numberOf(attempt(1), attempt(2, { costUsd: 0.5 }))).toBe(2);
  expect(numberOf(attempt(3), attempt(2))).toBe(2);
});

it("says what set it apart from the next one", () => {
  const why = (...attempts: readonly TaskAttempt[]) => bestAttempt(attempts)?.why;
  expect(why(attempt(1), attempt(2, { outcome: "failed" }))).toBe("passed");
  expect(why(attempt(1), attempt(2, { changedLines: 12 }))).toBe(
    "the fewest changed lines outside of tests (10)",
  );
  expect(why(attempt(1), attempt(2))).toBe("equal in all; the lowest number");
  expect(why(attempt(1))).toBe("the only one that was verified");
});

it("is the same whatever the order of the attempts, also if some lack a number", () => {
  const all = [attempt(1, { result: 3 }), attempt(2), attempt(3, { result: 3, changedLines: 1 })];
  const orders = [all, all.toReversed(), [all[1], all[2], all[0]].flatMap((one) => one ?? [])];
  expect(orders.map((order) => numberOf(...order))).toEqual([3, 3, 3]);
  expect(bestAttempt([])).toBeUndefined();
});

it("counts changed checks as not verified only where they are refused", () => {
  const changed = attempt(1, { outcome: "changed-checks" });
  expect(bestAttempt([changed])?.isUnverified).toBeUndefined();
  expect(bestAttempt([changed], { refusesChangedChecks: true })?.isUnverified).toBe(true);
});

it.each(["test/a.js", "src/__tests__/x.ts", "a.test.ts", "pkg/x_test.go", "test_x.py", "tests/conftest.py"])(
  "%s is a test",
  (path) => expect(isTestPath(path)).toBe(true),
);
it.each(["src/XTest.java", "lib/spec/a.rb", "a-spec.js", "x/y.snap"])("%s is a test, too", (path) =>
  expect(isTestPath(path)).toBe(true),
);
it.each(["src/a.js", "latest.js", "contest/a.py", "src/protest.ts", "attest", "test"])("%s is none", (path) =>
  expect(isTestPath(path)).toBe(false),
);
