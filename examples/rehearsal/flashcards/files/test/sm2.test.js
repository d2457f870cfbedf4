import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LOWEST_FACTOR, newSchedule, preview, review } from "../src/sm2.js";

const DAY = "2026-03-01";
const answers = (...qualities) =>
  qualities.reduce((at, quality) => review(at, quality, at.due), newSchedule(DAY));

describe("SM-2", () => {
  it("gives 1, 6, 15, 38 and 95 days to answers of quality 4", () => {
    const intervals = [1, 2, 3, 4, 5].map((count) => answers(...Array(count).fill(4)).interval);
    assert.deepEqual(intervals, [1, 6, 15, 38, 95]);
    assert.equal(answers(4, 4, 4).factor, 2.5);
  });

  it("changes the factor by +0.10, 0, -0.14 for the qualities 5, 4, 3", () => {
    assert.deepEqual(
      [5, 4, 3].map((quality) => answers(quality).factor),
      [2.6, 2.5, 2.36],
    );
  });

  it("never lets the factor fall below 1.3", () => {
    const hard = answers(...Array(20).fill(3));
    assert.equal(hard.factor, LOWEST_FACTOR);
    assert.ok(hard.interval > 0);
  });

  it("starts again after a wrong answer and leaves the factor alone", () => {
    const before = answers(5, 5, 5);
    const after = review(before, 2, before.due);
    assert.deepEqual(
      [after.repetitions, after.interval, after.factor, after.lapses],
      [0, 1, before.factor, 1],
    );
    assert.equal(review(after, 4, after.due).interval, 1);
  });

  it("counts a lapse only for a card that was known", () => {
    assert.equal(answers(1, 1, 1).lapses, 0);
  });

  it("reckons from the day of the answer, not from the day it was due", () => {
    assert.equal(review(answers(4), 4, "2026-04-01").due, "2026-04-07");
  });

  it("shows what each grade would give, without changing the schedule", () => {
    const schedule = answers(4, 4);
    assert.deepEqual(preview(schedule, schedule.due), { again: 1, hard: 15, good: 15, easy: 16 });
    assert.equal(schedule.repetitions, 2);
  });

  it("refuses qualities that are none", () => {
    for (const quality of [-1, 6, 2.5, Number.NaN, "4"]) {
      assert.throws(() => review(newSchedule(DAY), quality, DAY), RangeError);
    }
  });
});
