import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { createSanitizer } from "../../../activities/redaction/sanitizer.ts";
import { createChunkWriter } from "../../../activities/step/chunk-writer.ts";
import type { Store } from "../../../activities/store/db.ts";
import type { Notifier } from "../../../activities/store/events.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A writer whose writes are counted, and what tells it that somebody begins to watch. */
function writer(isWatched: boolean) {
  let writes = 0;
  let begin = () => {};
  const execute = async () => void (writes += 1);
  const notifier: Notifier = {
    wake: () => undefined,
    isWatched: () => isWatched,
    onWatched: (_id, begun) => {
      begin = begun;
      return () => (begin = () => {});
    },
    close: () => undefined,
  };
  const store = { db: { execute } } as unknown as Store;
  const at = { sessionId: "s", epoch: 1, step: 1, attempt: 1, model: "m" };
  const writer = createChunkWriter({ store, notifier, sanitizer: createSanitizer([]) }, at);
  return {
    /** 40 tokens a second. */
    async stream(seconds: number) {
      for (let token = 0; token < seconds * 40; token += 1) {
        writer.push({ type: "text", text: "word " });
        await vi.advanceTimersByTimeAsync(25);
      }
    },
    begin: () => begin(),
    end: () => writer.end(),
    writes: () => writes,
  };
}

it("text that nobody watches is written once a second at most, and watched text within 100 ms", async () => {
  const [unwatched, watched] = [writer(false), writer(true)];
  await unwatched.stream(10);
  await watched.stream(10);
  expect(unwatched.writes()).toBeGreaterThanOrEqual(9);
  expect(unwatched.writes()).toBeLessThanOrEqual(10);
  expect(watched.writes()).toBeGreaterThanOrEqual(100);
  await Promise.all([unwatched.end(), watched.end()]);
});

it("whoever begins to watch sees at once what was said", async () => {
  const one = writer(false);
  await one.stream(0.5);
  expect(one.writes()).toBe(0);
  one.begin();
  await vi.advanceTimersByTimeAsync(1);
  expect(one.writes()).toBe(1);
  await one.end();
});
