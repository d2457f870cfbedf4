import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { addDays, dayOf, daysBetween, isDay } from "../src/days.js";

describe("days", () => {
  it("go over months, leap years and the change to summer time", () => {
    assert.equal(addDays("2026-01-31", 1), "2026-02-01");
    assert.equal(addDays("2028-02-28", 1), "2028-02-29");
    assert.equal(addDays("2026-03-28", 2), "2026-03-30");
    assert.equal(addDays("2026-01-01", -1), "2025-12-31");
  });

  it("are counted with their direction", () => {
    assert.equal(daysBetween("2026-03-01", "2026-03-08"), 7);
    assert.equal(daysBetween("2026-03-08", "2026-03-01"), -7);
  });

  it("are distinguished from what only looks like one", () => {
    assert.ok(isDay("2026-02-28"));
    for (const text of ["2026-02-30", "2026-2-3", "today", "", undefined])
      assert.ok(!isDay(text), String(text));
    assert.equal(dayOf(new Date("2026-03-01T23:59:59Z")), "2026-03-01");
  });
});
