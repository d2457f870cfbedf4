/** Applies a delegate's changes to its parent's sandbox, file by file. Idempotent: a change that is already there is skipped. */
import type { Sandbox, SandboxFiles } from "../sandbox/sandbox.ts";
import type { ChangedFile } from "./changed-files.ts";
import { mergeFile, type FileState } from "./merge.ts";

export interface AppliedFiles {
  readonly applied: readonly string[];
  readonly notApplied: readonly NotApplied[];
}

export interface NotApplied {
  readonly path: string;
  readonly reason: string;
}

export async function applyFiles(
  sandbox: Pick<Sandbox, "files">,
  changed: readonly ChangedFile[],
  signal: AbortSignal,
): Promise<AppliedFiles> {
  const applied: string[] = [];
  const notApplied: NotApplied[] = [];
  for (const file of changed) {
    signal.throwIfAborted();
    const reason = await applyFile(sandbox.files, file);
    if (reason === undefined) applied.push(file.path);
    else notApplied.push({ path: file.path, reason });
  }
  return { applied, notApplied };
}

/** @returns why it was not merged */
async function applyFile(
  files: SandboxFiles,
  { path, base, child, bytes }: ChangedFile,
): Promise<string | undefined> {
  const found = await files.read(path, { maxBytes: 1 });
  // A folder above it may be missing, or be a file by now: the write reports that.
  if (!found.ok && found.reason !== "not-found") return found.message;
  const parent: FileState = found.ok ? { hash: found.hash, mode: found.mode } : undefined;
  const verdict = mergeFile(base, child, parent);
  if (verdict.kind === "same") return undefined;
  if (verdict.kind === "leave") return verdict.reason;
  // The sandbox would take a write of the same content for a repeated one, and change nothing.
  if (parent !== undefined && parent.hash === child?.hash) return "only its permissions were changed";
  // Another call may change it meanwhile: the sandbox compares once more.
  const done =
    bytes === undefined
      ? await files.remove(path, parent === undefined ? {} : { ifHash: parent.hash })
      : await files.write(path, bytes, {
          ifHash: parent?.hash ?? null,
          ...(child?.mode === undefined ? {} : { mode: child.mode }),
        });
  return done.ok ? undefined : done.message;
}
