/**
 * Saves and restores a workspace. A program with the tools' rights does the work inside the sandbox (agent/workspace/save.py,
 * agent/workspace/restore.py): the worker only passes bytes on, so nothing in a workspace can block its thread.
 */
import { fatal } from "../contract/failures.ts";
import type { CommandSandbox } from "../sandbox/own-command.ts";
import { runWorkspaceProgram } from "./workspace-program.ts";
import type { Skipped } from "../store/workspace-manifest.ts";
import type { StoredBytes, StoredChain, StoredPack } from "../store/workspace-pack.ts";

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
  const order = { do: "save", hasBase, whole: base === undefined || base.depth >= MAX_CHAIN } as const;
  const manifests = [latest, ...(hasBase ? [base] : [])].map((state) => state?.manifest ?? NOTHING);
  return runWorkspaceProgram(sandbox, order, manifests, ({ output, answer }) => {
    const { unchanged, packBytes, skipped, skippedCount, ...facts } = answer as unknown as SaveAnswer;
    const saved =
      unchanged === true
        ? undefined
        : { ...facts, pack: output.subarray(0, packBytes), manifest: output.subarray(packBytes) };
    return keep({ saved, skipped, skippedCount });
  });
}

/** The answer of agent/workspace/save.py. */
interface SaveAnswer extends Pick<SavedWorkspace, "changed" | "removed" | "whole"> {
  readonly unchanged?: boolean;
  readonly packBytes: number;
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
