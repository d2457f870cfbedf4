import { expect, test } from "vitest";
import { lanes } from "../../bench/stand/lanes.ts";

test("runs the given number at a time, in order, and a failed one makes room for the next", async () => {
  const inTurn = lanes(2);
  const began: number[] = [];
  let atOnce = 0;
  let most = 0;
  const work = (index: number) =>
    inTurn(async () => {
      began.push(index);
      atOnce += 1;
      most = Math.max(most, atOnce);
      await Promise.resolve();
      atOnce -= 1;
      if (index === 1) throw new Error("no");
      return index;
    });
  const ended = await Promise.allSettled([0, 1, 2, 3, 4].map(work));
  expect(began).toEqual([0, 1, 2, 3, 4]);
  expect(most).toBe(2);
  expect(ended.map(({ status }) => status)).toEqual([
    "fulfilled",
    "rejected",
    "fulfilled",
    "fulfilled",
    "fulfilled",
  ]);
});
