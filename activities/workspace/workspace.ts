/**
 * Saves and restores a workspace. The work is done inside the sandbox, by a program of ours with the tools' rights
 * (`sandbox/save.py`, `sandbox/restore.py`): the worker passes on bytes, and nothing in a workspace costs its thread more than that.
 */
import { fatal } from "../contract/failures.ts";
import { runWorkspaceProgram, type ProgramSandbox } from "./workspace-program.ts";
import type { Skipped } from "../store/workspace-manifest.ts";
import type { StoredBytes, StoredChain, StoredPack } from "../store/workspace-pack.ts";

/** What a workspace is compared with: `depth` is how many checkpoints must be read to restore it, itself included. */
export interface WorkspaceBase {
  readonly manifest: Uint8Array;
  readonly depth: number;
}

interface SavedWorkspace extends StoredPack {
  /** Paths that are new or different since the base, and how many are gone. */
  readonly changed: number;
  readonly removed: number;
  /** True where the pack holds everything, so that the checkpoint needs no parent. */
  readonly whole: boolean;
}

export interface WorkspaceSave {
  /** Undefined where nothing differs from the latest checkpoint. */
  readonly saved: SavedWorkspace | undefined;
  /** What is not in the save as it is now, and why, at most 200 paths; folders of `REBUILT_FOLDERS` are not listed. */
  readonly skipped: readonly Skipped[];
  /** How many there are in all. */
  readonly skippedCount: number;
}

/** So many checkpoints make the longest chain, where all can be read; then a whole one. Source: the requirements. */
export const MAX_CHAIN = 20;

const NOTHING = new Uint8Array();

/**
 * What changed in the workspace since `latest`, packed. What cannot be read now stays as it was saved before.
 * The pack holds the difference to `base`, which is `latest` where nothing is said: a step that is saved a second time
 * gives the checkpoint before it, so that its row can be replaced, and where there is none before it, undefined: then the
 * pack holds everything.
 * @throws SandboxUnavailable (retryable) when the sandbox does not do it; SandboxLost when it is gone.
 */
export function saveWorkspace(
  sandbox: ProgramSandbox,
  latest: WorkspaceBase | undefined,
  { base }: { readonly base: WorkspaceBase | undefined } = { base: latest },
): Promise<WorkspaceSave> {
  return keepWorkspace(sandbox, latest, base, (save) => save);
}

/**
 * As `saveWorkspace`, and hands the save to `keep`: of all that are large this worker holds one at a time, until it is kept.
 * @throws what `keep` throws
 */
export async function keepWorkspace<T>(
  sandbox: ProgramSandbox,
  latest: WorkspaceBase | undefined,
  base: WorkspaceBase | undefined,
  keep: (save: WorkspaceSave) => T | Promise<T>,
): Promise<T> {
  const hasBase = base !== latest;
  const order = { do: "save", hasBase, whole: base === undefined || base.depth >= MAX_CHAIN } as const;
  const manifests = [latest, ...(hasBase ? [base] : [])].map((each) => each?.manifest ?? NOTHING);
  return runWorkspaceProgram(sandbox, order, manifests, ({ output, answer }) => {
    const { unchanged, packBytes, skipped, skippedCount, ...facts } = answer as unknown as SaveAnswer;
    const saved =
      unchanged === true
        ? undefined
        : { ...facts, pack: output.subarray(0, packBytes), manifest: output.subarray(packBytes) };
    return keep({ saved, skipped, skippedCount });
  });
}

/** As sandbox/save.py gives it. */
interface SaveAnswer extends Pick<SavedWorkspace, "changed" | "removed" | "whole"> {
  readonly unchanged?: boolean;
  readonly packBytes: number;
  readonly skipped: readonly Skipped[];
  readonly skippedCount: number;
}

/**
 * Makes the workspace what it was after the last checkpoint of the chain: removes what was not there, writes what differs,
 * leaves the rest, rebuilt folders too. Doing it twice does nothing the second time.
 * @returns the last checkpoint's manifest with the times that its files have now, so that they do not count as changed
 * @throws WorkspaceLost (fatal) when the checkpoints cannot be read; SandboxUnavailable (retryable), also where a path is
 * not there afterwards; SandboxLost.
 */
export async function restoreWorkspace(sandbox: ProgramSandbox, chain: StoredChain): Promise<Uint8Array> {
  const { output, answer } = await runWorkspaceProgram(
    sandbox,
    { do: "restore" },
    partsOf(chain),
    (said) => said,
  );
  const { lost } = answer as { readonly lost?: string };
  if (lost !== undefined) {
    throw fatal(
      "WorkspaceLost",
      `The saved workspace cannot be read back: ${lost}.` +
        " Nothing was changed in the sandbox; its checkpoints are kept in Postgres.",
    );
  }
  return output;
}

async function* partsOf({ manifest, packs }: StoredChain): AsyncGenerator<Uint8Array | StoredBytes> {
  yield manifest;
  yield* packs;
}
