import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { createSanitizer } from "../../../activities/redaction/sanitizer.ts";
import { ChunkBatch, ChunkWriter } from "../../../activities/step/chunk-writer.ts";
import type { Store } from "../../../activities/store/db.ts";
import type { Announcements } from "../../../activities/store/announcements.ts";
import type { Pieces } from "../../../activities/store/events.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Writers of one worker, whose writes are kept, and what tells them that someone begins to watch. */
function worker(isWatched: boolean) {
  const writes: (readonly Pieces[])[] = [];
  const batch = new ChunkBatch(async (answers) => void writes.push(answers));
  const begins = new Set<() => void>();
  const announcements: Pick<Announcements, "isWatched" | "onWatched"> = {
    isWatched: () => isWatched,
    onWatched: (_id, begun) => {
      begins.add(begun);
      return () => void begins.delete(begun);
    },
  };
  const deps = { store: {} as Store, announcements, sanitizer: createSanitizer([]), batch };
  return {
    writes,
    writer: (sessionId: string, attempt = 1) =>
      new ChunkWriter(deps, { sessionId, epoch: 1, step: 1, attempt, model: "m" }),
    begin: () => begins.forEach((begun) => begun()),
    textOf: (sessionId: string) =>
      writes
        .flat()
        .filter((answer) => answer.sessionId === sessionId)
        .flatMap(({ chunks }) => chunks.map(({ text }) => text))
        .join(""),
  };
}

type Writer = ChunkWriter;

/** 40 tokens a second to each. */
async function stream(writers: readonly Writer[], seconds: number) {
  for (let token = 0; token < seconds * 40; token += 1) {
    for (const writer of writers) writer.push({ type: "text", text: `w${token} ` });
    await vi.advanceTimersByTimeAsync(25);
  }
}

it("text that no one watches is written once a second at most, and watched text within 100 ms", async () => {
  const [unwatched, watched] = [worker(false), worker(true)];
  const writers = [unwatched.writer("s"), watched.writer("s")];
  await stream(writers, 10);
  expect(unwatched.writes.length).toBeGreaterThanOrEqual(9);
  expect(unwatched.writes.length).toBeLessThanOrEqual(10);
  expect(watched.writes.length).toBeGreaterThanOrEqual(100);
  await Promise.all(writers.map((writer) => writer.end()));
});

it("what a hundred sessions are answered is written at once, once a second for all of them", async () => {
  const many = worker(false);
  const writers = Array.from({ length: 100 }, (_, place) => many.writer(`s${place}`));
  await stream(writers, 3.1);
  expect(many.writes.map((answers) => answers.length)).toEqual([100, 100, 100]);
  expect(many.textOf("s99")).toBe(many.textOf("s0"));
  expect(many.textOf("s0")).toMatch(/^w0 w1 w2 .*w119 $/);
  await Promise.all(writers.map((writer) => writer.end()));
});

it("two attempts at one step are not written by one statement", async () => {
  const twice = worker(false);
  const writers = [twice.writer("s", 1), twice.writer("s", 2)];
  await stream(writers, 2.2);
  expect(twice.writes.map((answers) => answers.map(({ attempt }) => attempt))).toEqual([[1], [2]]);
  await Promise.all(writers.map((writer) => writer.end()));
});

it("anyone who begins to watch sees at once what was said", async () => {
  const one = worker(false);
  const writer = one.writer("s");
  await stream([writer], 0.5);
  expect(one.writes).toEqual([]);
  one.begin();
  await vi.advanceTimersByTimeAsync(1);
  expect(one.writes).toHaveLength(1);
  await writer.end();
  await vi.advanceTimersByTimeAsync(2_000);
  expect(one.writes).toHaveLength(1);
});
