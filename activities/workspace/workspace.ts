/**
 * Saves and restores a workspace. A program with the tools' rights does the work inside the sandbox (agent/workspace/save.py,
 * agent/workspace/restore.py): the worker only passes bytes on, so nothing in a workspace can block its thread.
 * Also what the model and watchers are told of files that a save, or what was restored from it, does not have.
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
import {
  type Skipped,
  MAX_FILE_BYTES,
  MAX_PACK_BYTES,
  REBUILT_FOLDERS,
} from "../store/workspace-manifest.ts";
import type { StoredBytes, StoredChain, StoredPack } from "../store/workspace-pack.ts";
import { describeFiles } from "./sandbox-loss.ts";
import type { Queryable } from "../store/db.ts";
import type { NewEvent } from "../store/event.ts";
import { addNotice } from "../store/sandboxes.ts";
import { randomUUID } from "node:crypto";
import { abortable, inTurn } from "../sandbox/shared-work.ts";
import { workspaceSource } from "../sandbox/agent/sources.ts";
import type { CommandState, OutputStream } from "../sandbox/sandbox.ts";

/** What a workspace is compared with. `depth` is the number of checkpoints to read to restore it, itself included. */
export interface WorkspaceBase {
  readonly manifest: Uint8Array;
  readonly depth: number;
}

interface SavedWorkspace extends StoredPack {
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

/**
 * Packs what changed in the workspace since `latest` and hands it to `keep`. This worker holds only one large save at
 * a time, until it is kept. Files that cannot be read now stay as they were saved before.
 * @param base what the pack is the difference to; usually `latest`. To save a step a second time it is the checkpoint before
 * the row that is replaced, or undefined if there is none: then the pack holds everything.
 * @throws SandboxUnavailable (retryable) when the sandbox cannot do it; SandboxLost when it is gone; what `keep` throws
 */
export async function keepWorkspace<T>(
  sandbox: CommandSandbox,
  latest: WorkspaceBase | undefined,
  base: WorkspaceBase | undefined,
  keep: (save: WorkspaceSave) => T | Promise<T>,
): Promise<T> {
  const hasBase = base !== latest;
  const whole = base === undefined || base.depth >= MAX_CHAIN;
  const manifests = [latest, ...(hasBase ? [base] : [])].map((state) => state?.manifest ?? NOTHING);
  return packed(sandbox, { hasBase, whole }, manifests, keep);
}

/**
 * All files of what becomes a base, as one save.
 * @param only names of the files whose content is packed; undefined: all
 * @throws SandboxUnavailable (retryable), SandboxLost
 */
export const packBase = (
  sandbox: CommandSandbox,
  only: readonly string[] | undefined,
  rebuilt: readonly string[],
): Promise<WorkspaceSave> =>
  packed(
    sandbox,
    { hasBase: false, whole: true, rebuilt, limits: UNBOUNDED, only },
    [NOTHING],
    (save) => save,
  );

interface SaveRequest {
  readonly hasBase: boolean;
  readonly whole: boolean;
  readonly rebuilt?: readonly string[];
  readonly limits?: typeof LIMITS;
  readonly only?: readonly string[] | undefined;
}

function packed<T>(
  sandbox: CommandSandbox,
  request: SaveRequest,
  manifests: readonly Uint8Array[],
  keep: (save: WorkspaceSave) => T | Promise<T>,
): Promise<T> {
  return runWorkspaceProgram(sandbox, { ...request, do: "save" }, manifests, ({ output, answer }) => {
    const { unchanged, packBytes, beforeBytes, skipped, skippedCount, ...facts } =
      answer as unknown as SaveAnswer;
    const packsBytes = packBytes + beforeBytes;
    const saved =
      unchanged === true
        ? undefined
        : {
            ...facts,
            pack: output.subarray(0, packBytes),
            before: beforeBytes === 0 ? undefined : output.subarray(packBytes, packsBytes),
            manifest: output.subarray(packsBytes),
          };
    return keep({ saved, skipped, skippedCount });
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
    { do: "restore" },
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

/** How many files an event names. */
export const MAX_IN_EVENT = 20;

const LEFT_OUT = "Not in the saved workspace";
const KEPT = "Current state not saved; the earlier save of it is kept";

const REASONS: Readonly<Record<Skipped["reason"], readonly [what: string, why: string]>> = {
  "too-large": [LEFT_OUT, "A file larger than 64 MiB is not saved."],
  "workspace-too-large": [LEFT_OUT, "All files together exceed 256 MiB, so the largest are not saved."],
  "path-too-long": [LEFT_OUT, "A path longer than 4,095 bytes is not saved."],
  "not-readable": [KEPT, "It could not be read."],
  repository: [
    LEFT_OUT,
    "A repository's history is saved whole or not at all, and this one does not fit into the 256 MiB of a save, or has a part outside of /workspace (a separate folder, borrowed objects).",
  ],
  "repository-as-before": [
    KEPT,
    "A repository's history is saved whole or not at all, and this one has grown beyond the 256 MiB of a save, or has a part that cannot be read, or one outside of /workspace (a separate folder, borrowed objects).",
  ],
  "too-many": [KEPT, "A save holds at most 300,000 files and folders, and this folder's did not fit."],
};

/**
 * What a restore could not bring back. Its absence is marked in Git's index, so that no commit takes it for a deletion.
 * @param count of all, including those not in `files`
 */
function notRestoredNotice(files: readonly { readonly path: string }[], count: number): string {
  const entries = files.map(({ path }) => ({ path, bytes: 0 }));
  return (
    `[Not in the saves, so not restored: ${describeFiles(entries)}${count > files.length ? `, and more: ${count} in all` : ""}. ` +
    "They were not deleted: do not commit or report it so. Git passes over the absence of those that it tracks; one that you make again is added with `git update-index --no-skip-worktree PATH`.]"
  );
}

/** @param count of all skipped paths, including those not in `files` */
export function skippedFilesNotice(files: readonly Skipped[], count: number): string {
  const lines = Object.entries(REASONS).flatMap(([reason, [what, why]]) => {
    const matching = files.filter((file) => file.reason === reason);
    return matching.length === 0 ? [] : [`${what}: ${describeFiles(matching)}. ${why}`];
  });
  const more = count - files.length;
  if (more > 0) lines.push(`There ${more === 1 ? "is" : "are"} ${more} more.`);
  lines.push(
    "What is not saved exists only in the sandbox, until that is lost or the session ends: make sure that you can recreate it.",
  );
  return `[${lines.join(" ")}]`;
}

/** Tells the model what is not in the files that it finds. @returns the event for watchers, if there is something */
export async function reportNotRestored(
  tx: Queryable,
  { id, step }: { readonly id: string; readonly step: number },
  restored: Omit<RestoredWorkspace, "manifest"> | undefined,
): Promise<NewEvent[]> {
  if (restored === undefined || restored.notRestoredCount === 0) return [];
  const { notRestored, notRestoredCount: count } = restored;
  const files = notRestored.map(({ path, reason }) => ({ path: path.toWellFormed(), bytes: 0, reason }));
  await addNotice(tx, id, notRestoredNotice(files, count));
  return [{ type: "sandbox:left-out", step, data: { count, files: files.slice(0, MAX_IN_EVENT) } }];
}

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

/** Of a base: it is no save, and Git has told how large it is. */
const UNBOUNDED: typeof LIMITS = {
  entries: Number.MAX_SAFE_INTEGER,
  listingBytes: 2 * MAX_PACK_BYTES,
  pathBytes: LIMITS.pathBytes,
  fileBytes: Number.MAX_SAFE_INTEGER,
  bytes: Number.MAX_SAFE_INTEGER,
};

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
export async function runWorkspaceProgram<T>(
  sandbox: CommandSandbox,
  request: { readonly do: keyof typeof DONE } & object,
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
    inputOf({ limits: LIMITS, rebuilt: REBUILT_FOLDERS, ...request }, parts),
  );
  const isWhole = state.outKept === state.outBytes && state.errKept === state.errBytes;
  const isDone = state.kind === "exited" && state.exitCode === 0 && isWhole;
  const answer = isDone ? answerIn((await readAll(sandbox, state, "err")).toString()) : undefined;
  if (answer === undefined) {
    const end = await readEnd(sandbox, state);
    const [how, message] = "out" in end ? ["a cut output", ""] : [end.how, end.message];
    throw retryable(
      "SandboxUnavailable",
      `The workspace could not be ${DONE[request.do]}: the program in the sandbox ended with ${how}. ${lastLine(message)}` +
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
  return request.do === "save" && state.outKept > LARGE_BYTES ? inTurn("large save", finish) : finish();
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
async function readAll(sandbox: CommandSandbox, state: CommandState, stream: OutputStream): Promise<Buffer> {
  const output = Buffer.alloc(stream === "out" ? state.outKept : state.errKept);
  let at = 0;
  for await (const piece of wholeOutput(sandbox, state, stream)) {
    output.set(piece, at);
    at += piece.byteLength;
  }
  return output;
}
