import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { startHeartbeats } from "../../activities/runtime/activity-scope.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it("an activity reports at its interval, after a stop ever more rarely until its cancellation", () => {
  const beats: number[] = [];
  const begun = Date.now();
  const heartbeats = startHeartbeats(
    () => beats.push(Date.now() - begun),
    () => 10_000,
  );
  vi.advanceTimersByTime(25_000);
  expect(beats).toEqual([10_000, 20_000]);
  heartbeats.hurry();
  vi.advanceTimersByTime(1_000);
  expect(beats.slice(2)).toEqual([25_050, 25_150, 25_350, 25_750]);
  vi.advanceTimersByTime(60_000);
  expect(beats.at(-1)).toBeLessThanOrEqual(86_000);
  expect(beats.length).toBeLessThan(20);
  heartbeats.end();
  const heard = beats.length;
  vi.advanceTimersByTime(60_000);
  expect(beats).toHaveLength(heard);
});
