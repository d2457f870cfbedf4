/** How a worker's services begin and end. */
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Service } from "../../../activities/process/service.ts";
import { Repeating, ServiceList } from "../../../worker/services.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe("services", () => {
  /** Services that note what happens to them, and the lines that are logged. */
  function noting() {
    const noted: string[] = [];
    const logged: unknown[] = [];
    const logger = pino({ level: "warn" }, { write: (line) => void logged.push(JSON.parse(line)) });
    const one = (name: string, own: Partial<Service> = {}): Service => ({
      start: () => (noted.push(`${name} starts`), own.start?.() ?? Promise.resolve()),
      stop: () => (noted.push(`${name} stops`), own.stop?.() ?? Promise.resolve()),
    });
    return { noted, logged, one, services: (...list: Service[]) => new ServiceList(list, logger) };
  }

  it("start in order and stop in reverse, also as a part of others, and once", async () => {
    const { noted, logged, one, services } = noting();
    const all = services(one("a"), services(one("b"), one("c")), one("d"));
    await all.start();
    expect(noted.splice(0)).toEqual(["a starts", "b starts", "c starts", "d starts"]);
    await all.stop();
    await all.stop();
    expect(noted).toEqual(["d stops", "c stops", "b stops", "a stops"]);
    expect(logged).toEqual([]);
  });

  it("of which one does not start are stopped as far as they had started, and say why", async () => {
    const { noted, one, services } = noting();
    const missing = new Error("No database.");
    const all = services(one("a"), one("b"), one("c", { start: () => Promise.reject(missing) }), one("d"));
    await expect(all.start()).rejects.toBe(missing);
    expect(noted).toEqual(["a starts", "b starts", "c starts", "b stops", "a stops"]);
  });

  it("of which some hang or fail at their end keep no other from it", async () => {
    const { noted, logged, one, services } = noting();
    const all = services(
      one("a"),
      one("b", { stop: () => new Promise(() => undefined) }),
      one("c", { stop: () => Promise.reject(new Error("It is away.")) }),
    );
    await all.start();
    const stopped = all.stop();
    await vi.advanceTimersByTimeAsync(5_100);
    await stopped;
    expect(noted.slice(3)).toEqual(["c stops", "b stops", "a stops"]);
    expect(logged).toMatchObject([{ reason: "It is away." }, { reason: "no answer in 5000 ms" }]);
  });
});

describe("a round that repeats", () => {
  const HOUR_MS = 3_600_000;

  /** Rounds that end when they are told to. */
  function rounds(isDueAtStart: boolean) {
    const failures: unknown[] = [];
    const open: PromiseWithResolvers<void>[] = [];
    let begun = 0;
    const repeating = new Repeating({
      round: () => {
        begun += 1;
        const round = Promise.withResolvers<void>();
        open.push(round);
        return round.promise;
      },
      waitMs: () => HOUR_MS,
      isDueAtStart,
      onFailure: (error) => failures.push(error),
    });
    return { repeating, open, failures, begun: () => begun };
  }

  it("begins at once if it is due, and again after its end, also after a failure", async () => {
    const { repeating, open, failures, begun } = rounds(true);
    await repeating.start();
    expect(begun()).toBe(1);
    await vi.advanceTimersByTimeAsync(3 * HOUR_MS);
    expect(begun()).toBe(1);
    open.shift()?.reject(new Error("No."));
    await vi.advanceTimersByTimeAsync(HOUR_MS);
    expect(begun()).toBe(2);
    expect(failures).toEqual([new Error("No.")]);
    open.shift()?.resolve();
    await repeating.stop();
  });

  it("waits first if it is not, and is not begun by one that was stopped", async () => {
    const { repeating, begun } = rounds(false);
    await repeating.start();
    expect(begun()).toBe(0);
    await repeating.stop();
    await vi.advanceTimersByTimeAsync(3 * HOUR_MS);
    expect(begun()).toBe(0);
  });

  it("that is under way is waited for at the end, and none follows", async () => {
    const { repeating, open, begun } = rounds(true);
    await repeating.start();
    let isStopped = false;
    const stopped = repeating.stop().then(() => (isStopped = true));
    await vi.advanceTimersByTimeAsync(HOUR_MS);
    expect(isStopped).toBe(false);
    open.shift()?.resolve();
    await stopped;
    await vi.advanceTimersByTimeAsync(3 * HOUR_MS);
    expect(begun()).toBe(1);
  });
});
