/** A cancelled restore ends at once, whatever it waits for in the sandbox. */
import { expect, it } from "vitest";
import type { CommandState } from "../../activities/sandbox/sandbox.ts";
import { restoreWorkspace, endingWith } from "../../activities/workspace/workspace.ts";
import type { CommandSandbox } from "../../activities/sandbox/own-command.ts";

const ENDED: CommandState = {
  id: "ws-1",
  kind: "exited",
  exitCode: 0,
  startedAtMs: 0,
  durationMs: 1,
  outBytes: 1,
  errBytes: 2,
  outKept: 1,
  errKept: 2,
};

/** Answers every request but one. `reached` resolves at that request. */
function boxSilentAt(method: keyof CommandSandbox) {
  const { promise: reached, resolve } = Promise.withResolvers<void>();
  const sandbox: CommandSandbox = {
    start: async () => ENDED,
    feed: async () => true,
    run: async () => ENDED,
    wait: async () => ENDED,
    read: async (_id, stream) => Buffer.from(stream === "err" ? "{}" : "-"),
    discard: async () => undefined,
  };
  const silent = () => {
    resolve();
    return new Promise<never>(() => undefined);
  };
  return { sandbox: { ...sandbox, [method]: silent }, reached };
}

it.each([
  // Small files are sent with the command, large ones in pieces.
  ["run", 1],
  ["read", 1],
  ["discard", 1],
  ["start", 20],
  ["feed", 20],
  ["wait", 20],
] as const)(
  "a restore that is cancelled while the sandbox does not answer to `%s` ends with the signal",
  async (method, mebibytes) => {
    const { sandbox, reached } = boxSilentAt(method);
    const stop = new AbortController();
    const pack = Buffer.alloc(mebibytes * 2 ** 20);
    const packs = [{ byteLength: pack.byteLength, pieces: () => [pack] }];
    const restoring = restoreWorkspace(endingWith(stop.signal, sandbox), {
      manifest: Buffer.alloc(0),
      packs,
    });
    await reached;
    stop.abort(new Error("The user stopped it."));
    await expect(restoring).rejects.toThrow("The user stopped it.");
  },
);
