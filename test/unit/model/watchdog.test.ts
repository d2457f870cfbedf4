import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { ModelError } from "../../../activities/model/model.ts";
import { Watchdog } from "../../../activities/model/watchdog.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function watch() {
  const barks: ModelError[] = [];
  const deadlines = { connectMs: 100, firstTokenMs: 1_000, silenceMs: 300, answerMs: 20_000 };
  const watchdog = new Watchdog(deadlines, (error) => barks.push(error));
  return { barks, watchdog };
}

describe("the watchdog [R32] [R33] [R34]", () => {
  it("waits for headers as long as connectMs", () => {
    const { barks } = watch();
    vi.advanceTimersByTime(99);
    expect(barks).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(barks).toMatchObject([
      { class: "silent", message: expect.stringContaining("0.1 s (limits.connectTimeout)") },
    ]);
  });

  it("waits for the first token as long as firstTokenMs from the headers on", () => {
    const { barks, watchdog } = watch();
    vi.advanceTimersByTime(90);
    watchdog.connected();
    vi.advanceTimersByTime(999);
    expect(barks).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(barks[0]?.message).toContain("limits.firstTokenTimeout");
  });

  it("waits anew after each piece", () => {
    const { barks, watchdog } = watch();
    watchdog.connected();
    for (let piece = 0; piece < 10; piece += 1) {
      watchdog.heard();
      vi.advanceTimersByTime(299);
    }
    expect(barks).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(barks[0]?.message).toContain("limits.silenceTimeout");
  });

  it("gives hidden thinking in mid-answer the time of a first token", () => {
    const { barks, watchdog } = watch();
    watchdog.connected();
    watchdog.heard();
    watchdog.thinking();
    vi.advanceTimersByTime(999);
    expect(barks).toEqual([]);
    watchdog.heard();
    vi.advanceTimersByTime(300);
    expect(barks).toHaveLength(1);
  });

  it("ends an answer that goes on past answerMs, however lively it is", () => {
    const { barks, watchdog } = watch();
    watchdog.connected();
    for (let ms = 0; ms < 20_000; ms += 100) {
      expect(barks).toEqual([]);
      watchdog.heard();
      vi.advanceTimersByTime(100);
    }
    expect(barks).toMatchObject([
      { class: "too-long", message: expect.stringContaining("20 s (limits.modelTimeout)") },
    ]);
  });

  it("is quiet once stopped, and barks once", () => {
    const stopped = watch();
    stopped.watchdog.stop();
    const left = watch();
    vi.advanceTimersByTime(30_000);
    expect(stopped.barks).toEqual([]);
    expect(left.barks).toHaveLength(1);
  });
});
