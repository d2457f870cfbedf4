/** Runs the program that saves and restores a workspace, in its sandbox and with the tools' rights. */
import { randomUUID } from "node:crypto";
import { retryable } from "../contract/failures.ts";
import { abortable, inTurn } from "../sandbox/shared-work.ts";
import { workspaceSource } from "../sandbox/agent/sources.ts";
import {
  endOf,
  lastLine,
  program,
  runFed,
  wholeOutput,
  type CommandSandbox,
} from "../sandbox/own-command.ts";
import type { CommandState, OutputStream } from "../sandbox/sandbox.ts";
import { MAX_FILE_BYTES, MAX_PACK_BYTES, REBUILT_FOLDERS } from "../store/workspace-manifest.ts";
import type { StoredBytes } from "../store/workspace-pack.ts";

/** On 2 cores a full pack of incompressible 250 MiB took 10 s, 200,000 files 8 s to save and 20 s to restore (2026-11). */
const PROGRAM_TIMEOUT_MS = 300_000;
/** Larger saves are read and stored one after the other, so that they do not add up in the worker's memory. */
const LARGE_BYTES = 16 * 1024 * 1024;

/** The limits of a save. What exceeds them is reported. */
export const LIMITS = {
  /** Files, folders and links. The client copies in at most 200,000. */
  entries: 300_000,
  /** Of the uncompressed listing: 300,000 names of 255 bytes, the longest, fit. */
  listingBytes: 128 * 1024 * 1024,
  /** Linux's own limit, PATH_MAX: no ordinary program opens a longer path. */
  pathBytes: 4_095,
  fileBytes: MAX_FILE_BYTES,
  bytes: MAX_PACK_BYTES,
};

/** The same sandbox, but waiting for any of its answers ends with the signal. */
export function endingWith(signal: AbortSignal, sandbox: CommandSandbox): CommandSandbox {
  return {
    start: (command) => abortable(sandbox.start(command), signal),
    feed: (...given) => abortable(sandbox.feed(...given), signal),
    run: (command, options) => abortable(sandbox.run(command, { ...options, signal }), signal),
    wait: (id, options) => abortable(sandbox.wait(id, { ...options, signal }), signal),
    read: (...given) => abortable(sandbox.read(...given), signal),
    discard: (id) => abortable(sandbox.discard(id), signal),
  };
}

type Parts = Iterable<Uint8Array | StoredBytes> | AsyncIterable<Uint8Array | StoredBytes>;

export interface ProgramRun {
  readonly output: Uint8Array;
  readonly answer: Readonly<Record<string, unknown>>;
}

/**
 * @param order the input of agent/workspace/restore.py and agent/workspace/save.py; its `limits` override `LIMITS`
 * @param parts follow the order; read one by one, only as far as the program reads its input
 * @param use gets the program's answer, and must not keep it
 * @throws SandboxUnavailable (retryable) when the program fails; SandboxLost
 */
export async function runWorkspaceProgram<T>(
  sandbox: CommandSandbox,
  order: { readonly do: "save" | "restore" } & object,
  parts: Parts,
  use: (run: ProgramRun) => T | Promise<T>,
): Promise<T> {
  const { state } = await runFed(
    sandbox,
    {
      // A new id each time: a second attempt must read the current files.
      id: `ws-${randomUUID()}`,
      ...program("LONGHAUL_WORKSPACE", workspaceSource()),
      timeoutMs: PROGRAM_TIMEOUT_MS,
      maxOutputBytes: 2 * MAX_PACK_BYTES,
    },
    inputOf({ limits: LIMITS, rebuilt: REBUILT_FOLDERS, ...order }, parts),
  );
  const isWhole = state.outKept === state.outBytes && state.errKept === state.errBytes;
  const isDone = state.kind === "exited" && state.exitCode === 0 && isWhole;
  const answer = isDone ? answerIn((await readAll(sandbox, state, "err")).toString()) : undefined;
  if (answer === undefined) {
    const end = await endOf(sandbox, state);
    const [how, words] = "out" in end ? ["a cut output", ""] : [end.how, end.words];
    throw retryable(
      "SandboxUnavailable",
      `The workspace could not be ${order.do}d: the program in the sandbox ended with ${how}. ${lastLine(words)}` +
        " Earlier checkpoints are kept. It will be retried.",
    );
  }
  const finish = async (): Promise<T> => {
    const output = await readAll(sandbox, state, "out");
    // A listing of 5,000 files is 400 KB: a thousand of them would fill the sandbox's disk.
    await sandbox.discard(state.id);
    return use({ output, answer: { ...answer } });
  };
  // A restore holds the session's lock, for which a save in its turn may wait; its output is only a listing.
  return order.do === "save" && state.outKept > LARGE_BYTES ? inTurn("large save", finish) : finish();
}

/** Undefined for one that ends early: the sandbox was removed, or its disk is full. */
function answerIn(said: string): object | undefined {
  try {
    return JSON.parse(said) as object;
  } catch {
    return undefined;
  }
}

/** The order on a line, then each part after a line with its length. */
async function* inputOf(order: object, parts: Parts): AsyncGenerator<Uint8Array> {
  yield Buffer.from(`${JSON.stringify(order)}\n`);
  for await (const part of parts) {
    yield Buffer.from(`${part.byteLength}\n`);
    yield* part instanceof Uint8Array ? [part] : part.pieces();
  }
}

/** In one buffer of its size: it may be large. */
async function readAll(sandbox: CommandSandbox, state: CommandState, stream: OutputStream): Promise<Buffer> {
  const output = Buffer.alloc(stream === "out" ? state.outKept : state.errKept);
  let at = 0;
  for await (const piece of wholeOutput(sandbox, state, stream)) {
    output.set(piece, at);
    at += piece.byteLength;
  }
  return output;
}
