/** Runs a program of ours in a box and gives all it wrote. */
import { randomUUID } from "node:crypto";
import { retryable } from "../failures.ts";
import type { Sandbox } from "./sandbox.ts";
import { MAX_PACK_BYTES } from "./workspace-manifest.ts";

/** Longest a listing or a pack may take in ms: a full pack of incompressible 250 MiB took 10 s on 2 cores (2026-11). */
const COMMAND_TIMEOUT_MS = 120_000;
const READ_BYTES = 1024 * 1024;

/** What of a box it takes. */
export type ProgramBox = Pick<Sandbox, "run" | "read" | "discard">;

export interface ProgramRun {
  readonly output: Uint8Array;
  /** By the box's own clock, before the program began. */
  readonly startedAtMs: number;
}

/**
 * @param highestExitCode find and tar end with 1 when a file vanished or changed under them, as running processes do
 * @throws SandboxUnavailable (retryable) when it ends otherwise; SandboxLost
 */
export async function runWorkspaceProgram(
  box: ProgramBox,
  argv: readonly string[],
  options: { readonly stdin?: Uint8Array; readonly highestExitCode?: number } = {},
): Promise<ProgramRun> {
  // Never the same id twice: a second attempt must look at the files as they are now.
  const id = `ws-${randomUUID()}`;
  const { stdin, highestExitCode = 0 } = options;
  const state = await box.run(
    {
      id,
      argv,
      ...(stdin === undefined ? {} : { stdin }),
      env: { LC_ALL: "C.UTF-8" },
      timeoutMs: COMMAND_TIMEOUT_MS,
      maxOutputBytes: 2 * MAX_PACK_BYTES,
    },
    { timeoutMs: COMMAND_TIMEOUT_MS + 10_000 },
  );
  const ok = state.kind === "exited" && state.exitCode <= highestExitCode && state.outKept === state.outBytes;
  if (!ok) {
    const detail = state.errKept > 0 ? decode(await box.read(id, "err", 0, 500)) : "";
    const how = state.kind === "exited" ? `exit code ${state.exitCode}` : state.kind;
    throw retryable(
      "SandboxUnavailable",
      `The workspace could not be saved or restored: ${argv[0]} in the sandbox ended with ${how}. ${detail}` +
        " Earlier checkpoints are kept. It is tried again.",
    );
  }
  const pieces: Uint8Array[] = [];
  for (let offset = 0; offset < state.outKept;) {
    const piece = await box.read(id, "out", offset, READ_BYTES);
    if (piece.byteLength === 0) break;
    pieces.push(piece);
    offset += piece.byteLength;
  }
  // A list of 5,000 files is 400 KB: a thousand of them would fill the box's disk.
  await box.discard(id);
  return { output: Buffer.concat(pieces), startedAtMs: state.startedAtMs };
}

function decode(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes).trim();
}
