/**
 * Saves and restores a workspace. A program with the tools' rights does the work inside the sandbox (agent/workspace/save.py,
 * agent/workspace/restore.py): the worker only passes bytes on, so nothing in a workspace can block its thread.
 */
import { fatal, retryable } from "../contract/failures.ts";
import {
  type CommandSandbox,
  readEnd,
  lastLine,
  program,
  runFed,
  wholeOutput,
} from "../sandbox/own-command.ts";
import { type Skipped, REBUILT_FOLDERS } from "../store/workspace-manifest.ts";
import type { StoredBytes, StoredChain, StoredPack } from "../store/workspace-pack.ts";
import { LIMITS, OBJECT_LIMITS, type SaveLimits, UNBOUNDED } from "./save-limits.ts";
import { randomUUID } from "node:crypto";
import { abortable, inTurn } from "../sandbox/shared-work.ts";
import { workspaceSource } from "../sandbox/agent/sources.ts";
import type { CommandState, OutputStream } from "../sandbox/sandbox.ts";

/** What a workspace is compared with. `depth` is the number of checkpoints to read to restore it, itself included. */
export interface WorkspaceBase {
  readonly manifest: Uint8Array;
  readonly depth: number;
}

interface SavedWorkspace extends Pick<StoredPack, "manifest"> {
  /** Still in the sandbox: it is read there. */
  readonly pack: StoredBytes;
  /** How many paths are new or different since the base, and how many are gone. */
  readonly changed: number;
  readonly removed: number;
  /** True if the pack holds everything: the checkpoint needs no parent. */
  readonly whole: boolean;
  /** A pack of files as the base has them that differ since the latest checkpoint; absent if there are none. */
  readonly before?: Uint8Array | undefined;
}

export interface WorkspaceSave {
  /** Undefined if nothing differs from the latest checkpoint. */
  readonly saved: SavedWorkspace | undefined;
  /** Paths that the save does not have in their current state, at most 200; folders of `REBUILT_FOLDERS` are not listed. */
  readonly skipped: readonly Skipped[];
  /** How many there are in total. */
  readonly skippedCount: number;
}

/** The longest chain of checkpoints, if all files can be read; then comes a whole one. Source: the requirements. */
export const MAX_CHAIN = 20;

const NOTHING = new Uint8Array();

interface SaveStates {
  readonly latest: WorkspaceBase | undefined;
  readonly base: WorkspaceBase | undefined;
  /** Default: those of a save in Postgres. */
  readonly limits?: SaveLimits;
}

/**
 * Packs what changed in the workspace since `latest` and hands it to `keep`. This worker holds only one large save at
 * a time, until it is kept. Files that cannot be read now stay as they were saved before.
 * @param states.base what the pack is the difference to; usually `latest`. To save a step a second time it is the checkpoint before
 * the row that is replaced, or undefined if there is none: then the pack holds everything.
 * @throws SandboxUnavailable (retryable) when the sandbox cannot do it; SandboxLost when it is gone; what `keep` throws
 */
export async function keepWorkspace<T>(
  sandbox: CommandSandbox,
  { latest, base, limits = LIMITS }: SaveStates,
  keep: (save: WorkspaceSave) => T | Promise<T>,
): Promise<T> {
  const hasBase = base !== latest;
  const whole = base === undefined || base.depth >= MAX_CHAIN;
  const manifests = [latest, ...(hasBase ? [base] : [])].map((state) => state?.manifest ?? NOTHING);
  return packed(sandbox, { hasBase, whole, limits }, manifests, keep);
}

/**
 * All files of what becomes a base, as one save.
 * @param only names of the files whose content is packed; undefined: all
 * @throws SandboxUnavailable (retryable), SandboxLost
 */
export const packBase = <T>(
  sandbox: CommandSandbox,
  only: readonly string[] | undefined,
  rebuilt: readonly string[],
  keep: (save: WorkspaceSave) => Promise<T>,
): Promise<T> =>
  packed(sandbox, { hasBase: false, whole: true, rebuilt, limits: UNBOUNDED, only }, [NOTHING], keep);

interface SaveRequest {
  readonly hasBase: boolean;
  readonly whole: boolean;
  readonly rebuilt?: readonly string[];
  readonly limits?: SaveLimits;
  readonly only?: readonly string[] | undefined;
}

function packed<T>(
  sandbox: CommandSandbox,
  request: SaveRequest,
  manifests: readonly Uint8Array[],
  keep: (save: WorkspaceSave) => T | Promise<T>,
): Promise<T> {
  return runProgram(sandbox, { ...request, do: "save" }, manifests, ({ state, answer }) => {
    const { unchanged, packBytes, beforeBytes, skipped, skippedCount, ...facts } =
      answer as unknown as SaveAnswer;
    const finish = async (): Promise<T> => {
      try {
        if (unchanged === true) return await keep({ saved: undefined, skipped, skippedCount });
        const pieces = () => wholeOutput(sandbox, state, { length: packBytes });
        const rest = await readAll(sandbox, state, { from: packBytes });
        const before = beforeBytes === 0 ? undefined : rest.subarray(0, beforeBytes);
        const pack = { byteLength: packBytes, pieces };
        const saved = { ...facts, pack, before, manifest: rest.subarray(beforeBytes) };
        return await keep({ saved, skipped, skippedCount });
      } finally {
        await sandbox.discard(state.id);
      }
    };
    return state.outKept > LARGE_BYTES ? inTurn("large save", finish) : finish();
  });
}

/**
 * Lists all files, whatever their number and size, but those that Git does not track in folders of the names `rebuilt`; packs none.
 * @throws SandboxUnavailable (retryable), SandboxLost
 */
export function listWorkspace(
  sandbox: CommandSandbox,
  rebuilt: readonly string[],
): Promise<{ readonly manifest: Uint8Array; readonly files: number; readonly bytes: number }> {
  const request = { do: "list" as const, rebuilt };
  return runWorkspaceProgram(sandbox, request, [], ({ output, answer }) => {
    const { files, bytes } = answer as { readonly files: number; readonly bytes: number };
    return { manifest: output, files, bytes };
  });
}

/** What the workspace's own files take on the disk, in bytes, without those of a base. @throws as `runWorkspaceProgram` */
export function countWorkspace(sandbox: CommandSandbox): Promise<number> {
  return runWorkspaceProgram(sandbox, { do: "count" }, [], ({ answer }) =>
    Number((answer as { readonly bytes: number }).bytes),
  );
}

/** The answer of agent/workspace/save.py. */
interface SaveAnswer extends Pick<SavedWorkspace, "changed" | "removed" | "whole"> {
  readonly unchanged?: boolean;
  readonly packBytes: number;
  readonly beforeBytes: number;
  readonly skipped: readonly Skipped[];
  readonly skippedCount: number;
}

export interface RestoredWorkspace {
  /** The last checkpoint's, with the times that its files have now, so that they do not count as changed. */
  readonly manifest: Uint8Array;
  /** Paths that the save did not have and Git could not bring back, at most 200. */
  readonly notRestored: readonly { readonly path: string; readonly reason: string }[];
  readonly notRestoredCount: number;
}

/** The answer of agent/workspace/restore.py. */
interface RestoreAnswer extends Omit<RestoredWorkspace, "manifest"> {
  readonly lost?: string;
}

/**
 * Makes the workspace what it was at the last checkpoint of the chain: removes new paths, writes different ones, leaves the
 * rest, including rebuilt folders. Tracked files that the save lacks are taken from Git's objects. Idempotent.
 * @throws WorkspaceLost (fatal) when the checkpoints cannot be read; SandboxUnavailable (retryable), also if a path is
 * missing afterwards; SandboxLost.
 */
export async function restoreWorkspace(
  sandbox: CommandSandbox,
  chain: StoredChain,
): Promise<RestoredWorkspace> {
  const { output, answer } = await runWorkspaceProgram(
    sandbox,
    // Whatever was saved, with an object store or without.
    { do: "restore", limits: OBJECT_LIMITS },
    partsOf(chain),
    (run) => run,
  );
  const { lost, ...facts } = answer as unknown as RestoreAnswer;
  if (lost !== undefined) {
    throw fatal(
      "WorkspaceLost",
      `The saved workspace cannot be read: ${lost}.` +
        " Nothing was changed in the sandbox; the checkpoints are kept in Postgres.",
    );
  }
  return { manifest: output, ...facts };
}

async function* partsOf({ manifest, packs }: StoredChain): AsyncGenerator<Uint8Array | StoredBytes> {
  yield manifest;
  yield* packs;
}

/** On 2 cores a full pack of incompressible 250 MiB took 10 s, 200,000 files 8 s to save and 20 s to restore (2026-11). */
const PROGRAM_TIMEOUT_MS = 300_000;
/** How much longer it may take for more bytes: 4 GiB are 16 times 250 MiB. */
const MAX_SLOWER = 4;
/** Larger saves are read and stored one after the other, so that they do not add up in the worker's memory. */
const LARGE_BYTES = 16 * 1024 * 1024;

/** The same sandbox, but waiting for any of its answers ends with the signal. */
export function endingWith(signal: AbortSignal, sandbox: CommandSandbox): CommandSandbox {
  return {
    start: (command) => abortable(sandbox.start(command), signal),
    feed: (...args) => abortable(sandbox.feed(...args), signal),
    run: (command, options) => abortable(sandbox.run(command, { ...options, signal }), signal),
    wait: (id, options) => abortable(sandbox.wait(id, { ...options, signal }), signal),
    read: (...args) => abortable(sandbox.read(...args), signal),
    discard: (id) => abortable(sandbox.discard(id), signal),
  };
}

const DONE = { save: "saved", restore: "restored", list: "listed", count: "counted" } as const;

type Parts = Iterable<Uint8Array | StoredBytes> | AsyncIterable<Uint8Array | StoredBytes>;

export interface ProgramRun {
  readonly output: Uint8Array;
  readonly answer: Readonly<Record<string, unknown>>;
}

/**
 * @param request the input of agent/workspace/restore.py and agent/workspace/save.py; its `limits` override `LIMITS`
 * @param parts follow the order; read one by one, only as far as the program reads its input
 * @param use gets the program's answer, and must not keep it
 * @throws SandboxUnavailable (retryable) when the program fails; SandboxLost
 */
export function runWorkspaceProgram<T>(
  sandbox: CommandSandbox,
  request: ProgramRequest,
  parts: Parts,
  use: (run: ProgramRun) => T | Promise<T>,
): Promise<T> {
  return runProgram(sandbox, request, parts, async ({ state, answer }) => {
    const output = await readAll(sandbox, state);
    // A listing of 5,000 files is 400 KB: a thousand of them would fill the sandbox's disk.
    await sandbox.discard(state.id);
    return use({ output, answer });
  });
}

interface ProgramRequest {
  readonly do: keyof typeof DONE;
  readonly limits?: SaveLimits;
}

interface ProgramEnd extends Pick<ProgramRun, "answer"> {
  readonly state: CommandState;
}

/** @param use reads its output, and discards it */
async function runProgram<T>(
  sandbox: CommandSandbox,
  request: ProgramRequest,
  parts: Parts,
  use: (end: ProgramEnd) => Promise<T>,
): Promise<T> {
  const limits = request.limits ?? LIMITS;
  const { state } = await runFed(
    sandbox,
    {
      // A new id each time: a second attempt must read the current files.
      id: `ws-${randomUUID()}`,
      ...program("LONGHAUL_WORKSPACE", workspaceSource()),
      timeoutMs: PROGRAM_TIMEOUT_MS * Math.max(1, Math.min(MAX_SLOWER, limits.bytes / LIMITS.bytes)),
      // Bytes that do not become less, and what surrounds them.
      maxOutputBytes: Math.min(Number.MAX_SAFE_INTEGER, 2 * limits.bytes),
    },
    inputOf({ limits, rebuilt: REBUILT_FOLDERS, ...request }, parts),
  );
  const isWhole = state.outKept === state.outBytes && state.errKept === state.errBytes;
  const isDone = state.kind === "exited" && state.exitCode === 0 && isWhole;
  const answer = isDone ? answerIn((await readAll(sandbox, state, { stream: "err" })).toString()) : undefined;
  if (answer === undefined) {
    const end = await readEnd(sandbox, state);
    const [how, message] = "out" in end ? ["a cut output", ""] : [end.how, end.message];
    throw retryable(
      "SandboxUnavailable",
      `The workspace could not be ${DONE[request.do]}: the program in the sandbox ended with ${how}. ${lastLine(message)}` +
        " Earlier checkpoints are kept. It will be retried.",
    );
  }
  return use({ state, answer: { ...answer } });
}

/** Undefined for one that ends early: the sandbox was removed, or its disk is full. */
function answerIn(output: string): object | undefined {
  try {
    return JSON.parse(output) as object;
  } catch {
    return undefined;
  }
}

/** The order on a line, then each part after a line with its length. */
async function* inputOf(request: object, parts: Parts): AsyncGenerator<Uint8Array> {
  yield Buffer.from(`${JSON.stringify(request)}\n`);
  for await (const part of parts) {
    yield Buffer.from(`${part.byteLength}\n`);
    yield* part instanceof Uint8Array ? [part] : part.pieces();
  }
}

/** In one buffer of its size: it may be large. */
async function readAll(
  sandbox: CommandSandbox,
  state: CommandState,
  { stream = "out", from = 0 }: { readonly stream?: OutputStream; readonly from?: number } = {},
): Promise<Buffer> {
  const output = Buffer.alloc((stream === "out" ? state.outKept : state.errKept) - from);
  let at = 0;
  for await (const piece of wholeOutput(sandbox, state, { stream, from })) {
    output.set(piece, at);
    at += piece.byteLength;
  }
  return output;
}
