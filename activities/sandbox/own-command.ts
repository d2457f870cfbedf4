/** Runs our own commands in a sandbox, with the tools' rights: streams their input, reads their result and output. */
import { retryable } from "../contract/failures.ts";
import { pythonArguments } from "./agent/sources.ts";
import { outputBytes } from "./command-output.ts";
import type { CommandState, OutputStream, Sandbox, SandboxCommand } from "./sandbox.ts";

/** Size of one piece of input: encoding it in base64 and JSON takes about 25 ms of the worker's thread. */
const PIECE_BYTES = 8 * 1024 * 1024;
const MAX_TEXT_BYTES = 1024 * 1024;
const MAX_WORDS_BYTES = 8_000;
/** The sandbox ends a command at its timeout; we wait this much longer for its state. */
const MARGIN_MS = 10_000;

/** The part of a sandbox that our own commands need. */
export type CommandSandbox = Pick<Sandbox, "start" | "feed" | "run" | "wait" | "read" | "discard">;

export type OwnCommand = SandboxCommand & { readonly timeoutMs: number };

/** A command that runs a program of agent/sources.ts, passed in a variable of this name. */
export const program = (variable: string, source: string) => ({
  argv: pythonArguments(variable),
  program: variable,
  env: { LC_ALL: "C.UTF-8", LANGUAGE: "", [variable]: source },
});

/** @returns the command's state once it has ended: its output must be read and discarded */
export function runOwn(sandbox: CommandSandbox, command: OwnCommand): Promise<CommandState> {
  return sandbox.run(command, { timeoutMs: command.timeoutMs + MARGIN_MS });
}

/** As `runOwn`, for a command that reads `input`. @returns also how many bytes were sent: fewer than all if it ended early */
export async function runFed(
  sandbox: CommandSandbox,
  command: OwnCommand,
  input: AsyncIterable<Uint8Array>,
): Promise<{ readonly state: CommandState; readonly bytes: number }> {
  const pieces = inPieces(input);
  try {
    const { value: stdin = new Uint8Array() } = await pieces.next();
    let bytes = stdin.byteLength;
    let next = await pieces.next();
    if (next.done === true) return { state: await runOwn(sandbox, { ...command, stdin }), bytes };
    await sandbox.start({ ...command, stdin, more: true });
    while (next.done !== true) {
      const piece = next.value;
      next = await pieces.next();
      if (!(await sandbox.feed(command.id, bytes, piece, { last: next.done === true }))) break;
      bytes += piece.byteLength;
    }
    const waiting = { timeoutMs: command.timeoutMs + MARGIN_MS };
    return { state: await sandbox.wait(command.id, waiting), bytes };
  } finally {
    await pieces.return(undefined);
  }
}

/** The same bytes in pieces of equal size. */
async function* inPieces(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, undefined> {
  let parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of bytes) {
    for (let at = 0; at < part.byteLength;) {
      const piece = part.subarray(at, at + PIECE_BYTES - size);
      parts.push(piece);
      at += piece.byteLength;
      size += piece.byteLength;
      if (size < PIECE_BYTES) continue;
      yield Buffer.concat(parts);
      [parts, size] = [[], 0];
    }
  }
  if (size > 0) yield Buffer.concat(parts);
}

/** A part of an output, in bytes; default: all of standard output. */
interface OutputRange {
  readonly stream?: OutputStream;
  readonly from?: number;
  readonly length?: number;
}

/** The output of an ended command, piece by piece. @throws SandboxUnavailable (retryable) if a part of it is gone */
export async function* wholeOutput(
  sandbox: CommandSandbox,
  state: CommandState,
  { stream = "out", from = 0, length }: OutputRange = {},
): AsyncGenerator<Uint8Array> {
  let bytesLeft = length ?? (stream === "out" ? state.outKept : state.errKept) - from;
  for await (const piece of outputBytes(sandbox, { id: state.id, stream, from, length: bytesLeft })) {
    bytesLeft -= piece.byteLength;
    yield piece;
  }
  if (bytesLeft > 0)
    throw retryable(
      "SandboxUnavailable",
      "The output of a command could not be read from the sandbox. It will be retried.",
    );
}

type End =
  | { readonly out: string }
  | {
      readonly how: string;
      /** The end of its standard error. */
      readonly message: string;
    };

/** What a successful command wrote, at most 1 MiB, or how it failed. Discards the command's output. */
export async function readEnd(sandbox: CommandSandbox, state: CommandState): Promise<End> {
  const text = async (stream: OutputStream, size: number, most: number) =>
    size === 0
      ? ""
      : new TextDecoder().decode(await sandbox.read(state.id, stream, Math.max(0, size - most), most));
  try {
    if (state.kind === "exited" && state.exitCode === 0)
      return { out: await text("out", Math.min(state.outKept, MAX_TEXT_BYTES), MAX_TEXT_BYTES) };
    const how = state.kind === "exited" ? `exit code ${state.exitCode}` : state.kind;
    if (state.kind === "refused") return { how, message: state.reason };
    return { how, message: await text("err", state.errKept, MAX_WORDS_BYTES) };
  } finally {
    await sandbox.discard(state.id);
  }
}

/** The last line of a program's standard error. */
export const lastLine = (text: string): string => text.trim().split("\n").at(-1) ?? "";
