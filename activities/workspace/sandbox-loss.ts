/** What is lost when a session's sandbox is restarted or replaced, and the notice for the model. */
import { andMore, takeFirst } from "../text/lists.ts";
import type { SandboxIdentity } from "../store/sandboxes.ts";

/** The facts when a sandbox is opened for a session that had one before. */
export interface SandboxChange {
  readonly before: SandboxIdentity & {
    readonly savedStep: number | null;
    readonly leftOut: readonly { readonly path: string; readonly bytes: number }[];
  };
  readonly now: SandboxIdentity;
  /** The current step. */
  readonly step: number;
  /** The newest step that started a call which may change files. */
  readonly lastChangingStep: number | undefined;
  /** Whether anything was ever saved. */
  readonly hasCheckpoint: boolean;
  /** Folders that are never saved. */
  readonly unsavedFolders: readonly string[];
}

export type SandboxLoss =
  /** The same sandbox and the same processes. */
  | { readonly kind: "none" }
  /** The files are there; the processes have ended. */
  | { readonly kind: "processes"; readonly notice: string }
  /** The files are as last saved; `isUnsaved` if a later step may have changed files. */
  | { readonly kind: "files"; readonly notice: string; readonly isUnsaved: boolean }
  /** Files of earlier steps are lost, and none were ever saved. */
  | { readonly kind: "everything"; readonly message: string };

const MAX_NAMED = 10;

export function toSandboxLoss(change: SandboxChange): SandboxLoss {
  const { before, now, step, lastChangingStep = 0, hasCheckpoint } = change;
  if (before.volume === now.volume) {
    if (before.container === now.container && before.boot === now.boot) return { kind: "none" };
    return { kind: "processes", notice: restarted(before.container !== now.container) };
  }
  const savedStep = before.savedStep ?? 0;
  const isUnsaved = lastChangingStep > savedStep;
  const where =
    before.host === now.host ? "container and volume" : `its Docker host ${before.host} does not answer`;
  if (!hasCheckpoint && isUnsaved && savedStep < step - 1) {
    return {
      kind: "everything",
      message:
        `The sandbox was lost (${where}) before its files were ever saved: what steps ${savedStep + 1} to ${step - 1} wrote is lost. ` +
        "The conversation is kept. Send a message to continue with an empty workspace, or start a new session.",
    };
  }
  return { kind: "files", notice: recreated(change, where, savedStep, isUnsaved), isUnsaved };
}

/**
 * The notice for a session that went back to before `step`, if its sandbox had files of earlier steps that no save had: the
 * newest save is restored, which is older. @returns undefined if the saves have all of them
 */
export function unsavedAtReset({
  before,
  step,
  lastChangingStep = 0,
}: Pick<SandboxChange, "step" | "lastChangingStep"> & {
  readonly before: Pick<SandboxChange["before"], "savedStep">;
}): string | undefined {
  const savedStep = before.savedStep ?? 0;
  if (savedStep >= step - 1 || lastChangingStep <= savedStep) return undefined;
  return `[The files in /workspace are as saved after step ${savedStep}: the session went back before those of step ${step - 1} were saved. What steps ${savedStep + 1} to ${step - 1} changed is not there: check the files before you continue.]`;
}

function restarted(isAnotherContainer: boolean): string {
  const outside = isAnotherContainer ? " and everything outside /workspace" : "";
  return (
    "[The sandbox was restarted by something else. The files in /workspace are as they were. " +
    `All processes are gone, including background commands, and so is /tmp${outside}. Restart what you need.]`
  );
}

function recreated(change: SandboxChange, where: string, savedStep: number, isUnsaved: boolean): string {
  const { before, step, hasCheckpoint, unsavedFolders } = change;
  const lines = [
    `The sandbox was lost (${where}) and created again.`,
    hasCheckpoint
      ? `The files in /workspace are as saved after step ${savedStep}.`
      : "Nothing had been saved yet: /workspace is as it was at the start.",
  ];
  if (isUnsaved && savedStep < step - 1)
    lines.push(
      `What steps ${savedStep + 1} to ${step - 1} changed after that is lost: check the files before you continue.`,
    );
  if (isUnsaved && change.lastChangingStep === step)
    lines.push(`What the calls of step ${step} had done by then is lost too.`);
  lines.push(
    `Never saved, so lost: running processes, including background commands; everything outside /workspace; folders named ${unsavedFolders.join(", ")}.`,
  );
  if (before.leftOut.length > 0) lines.push(`Not in the saves, so lost: ${describeFiles(before.leftOut)}.`);
  lines.push("Recreate what you need.");
  return `[${lines.join(" ")}]`;
}

/** Paths with their sizes, the first ones. */
export function describeFiles(files: readonly { readonly path: string; readonly bytes: number }[]): string {
  const { shown, more } = takeFirst(files, MAX_NAMED);
  const entries = shown.map(
    ({ path, bytes }) => `${JSON.stringify(path)}${bytes > 0 ? ` (${sizeOf(bytes)})` : ""}`,
  );
  return `${entries.join(", ")}${andMore(more)}`;
}

function sizeOf(bytes: number): string {
  return bytes < 2 ** 20 ? `${Math.ceil(bytes / 1024)} KiB` : `${Math.round(bytes / 2 ** 20)} MiB`;
}
