/** What of a failed command's output is shown, and when two failures are the same. */
import { expect, it } from "vitest";
import { failureExcerpt, failureSignature } from "../../../activities/verify/failure-excerpt.ts";

const lines = (count: number, text = "ok") =>
  Array.from({ length: count }, (_, index) => `${text} ${index}`).join("\n");

it.each([
  ["a test runner's", "✖ sums (2 ms)"],
  ["Go's", "--- FAIL: TestSums (0.00s)"],
  ["pytest's", "E       assert 0 == 4"],
  ["TAP's", "not ok 3 - sums"],
  ["a compiler's", "src/a.c:3:1: error: expected ';'"],
  ["Rust's", "error[E0308]: mismatched types"],
  ["Python's", "Traceback (most recent call last):"],
])("%s mark is found in a long output, with its surroundings", (_whose, mark) => {
  const { text, firstError } = failureExcerpt(`${lines(500)}\n${mark}\n${lines(500, "after")}\nbye`);
  expect(firstError).toBe(mark);
  expect(text).toContain(mark);
  expect(text).toContain("ok 499");
  expect(text).not.toContain("ok 100\n");
  expect(text).toMatch(/^\[470 lines before\]/);
  expect(text).toMatch(/bye$/);
  expect(text.length).toBeLessThanOrEqual(8_000);
});

it("prefers a test's failure to a word in a log before it", () => {
  const { firstError } = failureExcerpt("warning: cannot find a cache\nall fine\n✗ sums");
  expect(firstError).toBe("✗ sums");
});

it("says so if no line says why, and shows the end", () => {
  const { text, firstError } = failureExcerpt(lines(300));
  expect(firstError).toBeUndefined();
  expect(text).toMatch(/^\[No line says why; this is the end\.\]\n/);
  expect(text).toMatch(/ok 299$/);
  expect(failureExcerpt("\n\n")).toEqual({ text: "It printed nothing.", firstError: undefined });
});

it("stays in its bounds, whatever is printed", () => {
  expect(failureExcerpt(`Error: ${"x".repeat(1_000_000)}`).text.length).toBeLessThanOrEqual(8_000);
  const wide = Array.from({ length: 400 }, (_, index) => `${index} ${"y".repeat(900)}`).join("\n");
  const { text } = failureExcerpt(`${wide}\nError: this\n${wide}`);
  expect(text.length).toBeLessThanOrEqual(8_100);
  expect(text).toContain("Error: this");
  expect(failureExcerpt("again\nagain\nagain\nError: x").text).toBe("again [3 times]\nError: x");
});

it("takes a failure for the same whatever differs from run to run", () => {
  const sign = (line: string) => failureSignature("npm test", "exit code 1", line);
  expect(sign("✖ sums (15.001 ms) at 0x7f3a")).toBe(sign("✖ sums (3 ms) at 0x11"));
  expect(sign("✖ sums")).not.toBe(sign("✖ differences"));
  expect(sign("✖ sums")).not.toBe(failureSignature("npm test", "exit code 2", "✖ sums"));
});
