/** Runs the program that saves and restores a workspace, in its sandbox and with the tools' rights. */
import { randomUUID } from "node:crypto";
import { retryable } from "../contract/failures.ts";
import { abortable } from "../sandbox/shared-work.ts";
import { pythonArguments, workspaceSource } from "../sandbox/agent/sources.ts";
import type { CommandState, OutputStream, Sandbox } from "../sandbox/sandbox.ts";
import { MAX_FILE_BYTES, MAX_PACK_BYTES, REBUILT_FOLDERS } from "../store/workspace-manifest.ts";
import type { StoredBytes } from "../store/workspace-pack.ts";

/** On 2 cores a full pack of incompressible 250 MiB took 10 s, 200,000 files 8 s to save and 20 s to restore (2026-11). */
const PROGRAM_TIMEOUT_MS = 300_000;
const READ_BYTES = 1024 * 1024;
/**
 * Of the input, at a time: in base64 and JSON it takes about 25 ms of the worker's thread. The supervisor of an earlier version
 * accepts only the first piece.
 */
const PIECE_BYTES = 8 * 1024 * 1024;
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

/** The part of a sandbox that the program needs. */
export type ProgramSandbox = Pick<Sandbox, "start" | "feed" | "run" | "wait" | "read" | "discard">;

/** The same sandbox, but waiting for any of its answers ends with the signal. */
export function endingWith(signal: AbortSignal, sandbox: ProgramSandbox): ProgramSandbox {
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
 * @param order the input of agent/restore.py and agent/save.py; its `limits` override `LIMITS`
 * @param parts follow the order; taken one by one, only as far as the program reads
 * @param use gets the program's answer, and must not keep it
 * @throws SandboxUnavailable (retryable) when the program fails; SandboxLost
 */
export async function runWorkspaceProgram<T>(
  sandbox: ProgramSandbox,
  order: { readonly do: "save" | "restore" } & object,
  parts: Parts,
  use: (run: ProgramRun) => T | Promise<T>,
): Promise<T> {
  // A new id each time: a second attempt must read the current files.
  const id = `ws-${randomUUID()}`;
  const state = await feedToEnd(
    sandbox,
    id,
    pieces({ limits: LIMITS, rebuilt: REBUILT_FOLDERS, ...order }, parts),
  );
  const isWhole = state.outKept === state.outBytes && state.errKept === state.errBytes;
  if (state.kind !== "exited" || state.exitCode !== 0 || !isWhole) {
    const detail =
      state.errKept > 0 ? lastLine(await sandbox.read(id, "err", Math.max(0, state.errKept - 500), 500)) : "";
    await sandbox.discard(id);
    const how = state.kind === "exited" ? `exit code ${state.exitCode}` : state.kind;
    throw retryable(
      "SandboxUnavailable",
      `The workspace could not be ${order.do}d: the program in the sandbox ended with ${how}. ${detail}` +
        " Earlier checkpoints are kept. It will be retried.",
    );
  }
  const answer = JSON.parse(
    Buffer.from(await readAll(sandbox, id, "err", state.errKept)).toString(),
  ) as object;
  const finish = async (): Promise<T> => {
    const output = await readAll(sandbox, id, "out", state.outKept);
    // A listing of 5,000 files is 400 KB: a thousand of them would fill the sandbox's disk.
    await sandbox.discard(id);
    return use({ output, answer: { ...answer } });
  };
  // A restore holds the session's lock, for which a save in its turn may wait; its output is only a listing.
  return order.do === "save" && state.outKept > LARGE_BYTES ? inTurn(finish) : finish();
}

async function feedToEnd(
  sandbox: ProgramSandbox,
  id: string,
  input: AsyncGenerator<Uint8Array>,
): Promise<CommandState> {
  const first = await input.next();
  let next = await input.next();
  const command = {
    id,
    argv: pythonArguments("LONGHAUL_WORKSPACE"),
    env: { LC_ALL: "C.UTF-8", LONGHAUL_WORKSPACE: workspaceSource },
    ...(first.done === true ? {} : { stdin: first.value }),
    timeoutMs: PROGRAM_TIMEOUT_MS,
    maxOutputBytes: 2 * MAX_PACK_BYTES,
  };
  const waiting = { timeoutMs: PROGRAM_TIMEOUT_MS + 10_000 };
  if (next.done === true) return sandbox.run(command, waiting);
  await sandbox.start({ ...command, more: true });
  for (let offset = first.value?.byteLength ?? 0; next.done !== true;) {
    const piece = next.value;
    next = await input.next();
    if (!(await sandbox.feed(id, offset, piece, { last: next.done === true }))) break;
    offset += piece.byteLength;
  }
  await input.return(undefined);
  return sandbox.wait(id, waiting);
}

/** The order on a line, then each part after a line with its length, joined and cut into pieces of one size. */
async function* pieces(order: object, parts: Parts): AsyncGenerator<Uint8Array, undefined> {
  let small: Uint8Array[] = [Buffer.from(`${JSON.stringify(order)}\n`)];
  let bytes = 0;
  for await (const part of parts) {
    small.push(Buffer.from(`${part.byteLength}\n`));
    for await (const stored of part instanceof Uint8Array ? [part] : part.pieces()) {
      for (let at = 0; at < stored.byteLength;) {
        const piece = stored.subarray(at, at + PIECE_BYTES - bytes);
        small.push(piece);
        at += piece.byteLength;
        bytes += piece.byteLength;
        if (bytes < PIECE_BYTES) continue;
        yield Buffer.concat(small);
        [small, bytes] = [[], 0];
      }
    }
  }
  if (small.length > 0) yield Buffer.concat(small);
}

async function readAll(
  sandbox: ProgramSandbox,
  id: string,
  stream: OutputStream,
  size: number,
): Promise<Uint8Array> {
  const output = Buffer.alloc(size);
  for (let at = 0; at < size;) {
    const piece = await sandbox.read(id, stream, at, Math.min(READ_BYTES, size - at));
    if (piece.byteLength === 0)
      throw retryable(
        "SandboxUnavailable",
        "The saved workspace could not be read from the sandbox. It will be retried.",
      );
    output.set(piece, at);
    at += piece.byteLength;
  }
  return output;
}

let turn: Promise<unknown> = Promise.resolve();

/** One at a time in this worker. */
function inTurn<T>(work: () => Promise<T>): Promise<T> {
  const mine = turn.then(work, work);
  turn = mine.catch(() => undefined);
  return mine;
}

const lastLine = (bytes: Uint8Array): string =>
  new TextDecoder().decode(bytes).trim().split("\n").at(-1) ?? "";
