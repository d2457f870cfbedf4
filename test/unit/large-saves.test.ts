/** The memory of concurrent large saves does not add up in a worker. */
import { expect, it } from "vitest";
import type { CommandState } from "../../activities/sandbox/sandbox.ts";
import { keepWorkspace } from "../../activities/workspace/workspace.ts";
import type { CommandSandbox } from "../../activities/sandbox/own-command.ts";

const ANSWER = Buffer.from(
  JSON.stringify({ packBytes: 1, changed: 1, removed: 0, whole: true, skipped: [], skippedCount: 0 }),
);

/** Size of its save in bytes. */
function sandboxWith(bytes: number): CommandSandbox {
  const ended: CommandState = {
    id: "ws-1",
    kind: "exited",
    exitCode: 0,
    startedAtMs: 0,
    durationMs: 1,
    outBytes: bytes,
    outKept: bytes,
    errBytes: ANSWER.byteLength,
    errKept: ANSWER.byteLength,
  };
  return {
    start: async () => ended,
    feed: async () => true,
    run: async () => ended,
    wait: async () => ended,
    read: async (_id, stream, _offset, maxBytes) => (stream === "err" ? ANSWER : Buffer.alloc(maxBytes)),
    discard: async () => undefined,
  };
}

const NEW = { latest: undefined, base: undefined };

it("one large save is in memory at a time, until stored or failed; small ones do not wait", async () => {
  const [large, small] = [sandboxWith(17 * 2 ** 20), sandboxWith(2)];
  let [held, most] = [0, 0];
  const slow = Promise.withResolvers<void>();
  const keep = async (isKept: boolean) => {
    held += 1;
    most = Math.max(most, held);
    await slow.promise;
    held -= 1;
    if (!isKept) throw new Error("Postgres is away.");
  };
  const saves = [true, false, true].map((isKept) => keepWorkspace(large, NEW, () => keep(isKept)));
  expect(await keepWorkspace(small, NEW, () => "kept")).toBe("kept");
  slow.resolve();
  const outcomes = await Promise.allSettled(saves);
  expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  expect(most).toBe(1);
});
