/** A text from standard input is bounded while it is read: what follows the limit is never held. */
import { Readable } from "node:stream";
import { expect, it } from "vitest";
import { MAX_TEXT_CHARS, readMessage, readTask, type Stdin } from "../../../client/sessions/task-input.ts";

/** Without an end; counts what was taken of it. */
function endless(kind: Stdin["kind"], piece: string) {
  const taken = { bytes: 0 };
  const stream = new Readable({
    read() {
      taken.bytes += Buffer.byteLength(piece);
      this.push(piece);
    },
  });
  return { taken, stdin: { kind, stream } };
}

it.each([
  ["a task, by -", "pipe", (stdin: Stdin) => readTask(["-"], stdin, () => undefined)],
  ["a task's input from a pipe", "pipe", (stdin: Stdin) => readTask(["look"], stdin, () => undefined)],
  ["a task's input from a file", "file", (stdin: Stdin) => readTask(["look"], stdin, () => undefined)],
  ["a task's input from a socket", "socket", (stdin: Stdin) => readTask(["look"], stdin, () => undefined)],
  ["a message", "pipe", (stdin: Stdin) => readMessage(["-"], stdin)],
] as const)("%s without an end is refused at the limit", async (_what, kind, read) => {
  for (const piece of ["x".repeat(65_536), "ü€".repeat(9_000), " ".repeat(65_536)]) {
    const { stdin, taken } = endless(kind, piece);
    await expect(read(stdin)).rejects.toThrow(`${MAX_TEXT_CHARS} characters`);
    expect(taken.bytes).toBeLessThan(5 * MAX_TEXT_CHARS);
  }
});
