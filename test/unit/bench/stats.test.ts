import { expect, test } from "vitest";
import { slope } from "../../bench/stats.ts";

test("growth is what a line through all points rises by", () => {
  expect(slope([3, 5, 7, 9].map((y, x) => ({ x, y })))).toBe(2);
  expect(slope([4, 4, 4].map((y, x) => ({ x, y })))).toBe(0);
  expect(
    slope([
      { x: 0, y: 0 },
      { x: 1, y: 4 },
      { x: 2, y: 2 },
    ]),
  ).toBeCloseTo(1);
});
