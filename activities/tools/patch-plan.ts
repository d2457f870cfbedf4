/** Computes each file's new state from a parsed patch and the current files. Nothing is written here. */
import { cutChars } from "../contract/cut-text.ts";
import type { SandboxFiles } from "../sandbox/sandbox.ts";
import { accepted, ToolFailure } from "./failure.ts";
import { omissionLine } from "./omission.ts";
import { applyChunks, type ChunksOutcome, reversed } from "./patch-apply.ts";
import { changesLines, type PatchOperation } from "./patch-parse.ts";
import { showName, workspacePath } from "./paths.ts";
import { decodeText, encodeText, readTextFile, readWholeFile } from "./text-file.ts";

/** A file's old and new state; undefined means no file. */
export interface PlannedFile {
  readonly path: string;
  readonly before: FileState | undefined;
  readonly after: FileState | undefined;
}

export interface FileState {
  /** Undefined if the contents cannot be restored: a link, a device, a file too large to hold. */
  readonly bytes: Uint8Array | undefined;
  /** Lets a write detect that someone else wrote; undefined for what is not a file, or not written yet. */
  readonly hash?: string;
  /** Undefined: keep the existing file's mode. */
  readonly mode?: number | undefined;
}

export interface PatchPlan {
  readonly files: readonly PlannedFile[];
  readonly summary: readonly string[];
}

/** A file's state in the patch so far: `after` is the same object as `before` until the patch changes it. */
interface Draft {
  readonly path: string;
  readonly before: FileState | undefined;
  after: FileState | undefined;
}

/** Plans only files that the patch changes. @throws ToolFailure if a part of it does not apply */
export async function planPatch(
  files: SandboxFiles,
  operations: readonly PatchOperation[],
): Promise<PatchPlan> {
  const drafts = new Map<string, Draft>();
  const summary: string[] = [];
  for (const operation of operations) summary.push(await plan(files, drafts, operation));
  return { files: [...drafts.values()].filter(({ before, after }) => before !== after), summary };
}

/** @returns a line that describes what was done */
async function plan(
  files: SandboxFiles,
  drafts: Map<string, Draft>,
  operation: PatchOperation,
): Promise<string> {
  const path = workspacePath(operation.path).relative;
  const name = showName(path);
  switch (operation.kind) {
    case "add": {
      const draft = await load(files, drafts, path);
      if (draft.before !== undefined && draft.before.hash === undefined)
        throw new ToolFailure(
          `${name} is not a regular file. Delete it in one patch and add the file in the next one.`,
        );
      const now = textOf(draft);
      refuseOmission(name, operation.text, now.ok ? now.text : "");
      draft.after = { bytes: encodeText({ text: operation.text, bom: false }) };
      return `A ${name}`;
    }
    case "delete": {
      const draft = await loadForRemoval(files, drafts, path);
      if (draft.after === undefined)
        throw new ToolFailure(`${name} cannot be deleted: there is no such file.`);
      draft.after = undefined;
      return `D ${name}`;
    }
    case "update": {
      const draft = await load(files, drafts, path);
      if (draft.after === undefined) {
        throw new ToolFailure(
          `${name} cannot be updated: there is no such file. To create it, use *** Add File.`,
        );
      }
      const after = { bytes: encodeText(updated(draft, operation.chunks)), mode: draft.after.mode };
      if (operation.moveTo === undefined) {
        draft.after = after;
        return `M ${name}`;
      }
      const target = workspacePath(operation.moveTo).relative;
      const destination = await load(files, drafts, target);
      draft.after = undefined;
      destination.after = after;
      return `M ${name} -> ${showName(target)}`;
    }
  }
}

function updated(draft: Draft, chunks: Extract<PatchOperation, { kind: "update" }>["chunks"]) {
  const name = showName(draft.path);
  const { text, bom } = accepted(textOf(draft));
  const changed = applyChunks(text, chunks);
  if (!changed.ok) throw new ToolFailure(notFound(name, changed));
  const added = chunks.flatMap((chunk) => chunk.lines.filter((line) => line.kind === "add"));
  refuseOmission(name, added.map((line) => line.text).join("\n"), text);
  return { text: changesLines(chunks) ? changed.text : text, bom };
}

/** The text after the patch so far; empty if there is no file. */
function textOf({ path, after }: Draft): ReturnType<typeof decodeText> {
  if (after === undefined) return { ok: true, text: "", bom: false };
  if (after.bytes !== undefined) return decodeText(path, after.bytes);
  return { ok: false, reason: "failed", message: `${showName(path)} is not a text file.` };
}

async function load(files: SandboxFiles, drafts: Map<string, Draft>, path: string): Promise<Draft> {
  const known = drafts.get(path);
  if (known !== undefined) return known;
  const read = await readWholeFile(files, path);
  const before = !read.ok && read.reason === "not-found" ? undefined : accepted(read);
  const draft: Draft = { path, before, after: before };
  drafts.set(path, draft);
  return draft;
}

/** A link itself is removed, not its target; binary and large files are removed like any other. */
async function loadForRemoval(files: SandboxFiles, drafts: Map<string, Draft>, path: string): Promise<Draft> {
  const known = drafts.get(path);
  if (known !== undefined) return known;
  const answer = await files.stat(path);
  if (!answer.ok && answer.reason === "not-found") return { path, before: undefined, after: undefined };
  const { kind } = accepted(answer);
  if (kind === "folder") throw new ToolFailure(`${showName(path)} is a folder: remove it with bash.`);
  const before = kind === "file" ? await beforeRemoval(files, path) : { bytes: undefined };
  const draft: Draft = { path, before, after: before };
  drafts.set(path, draft);
  return draft;
}

async function beforeRemoval(files: SandboxFiles, path: string): Promise<FileState> {
  const whole = await readWholeFile(files, path);
  if (!whole.ok && whole.reason === "failed") {
    const head = await files.read(path, { maxBytes: 1 });
    if (head.ok) return { bytes: undefined, hash: head.hash, mode: head.mode };
  }
  return accepted(whole);
}

function refuseOmission(name: string, text: string, before: string): void {
  const line = omissionLine(text, before);
  if (line === undefined) return;
  throw new ToolFailure(
    `The change of ${name} has the line "${cutChars(line, 100)}", which stands for text that was left out. Write the text out.`,
  );
}

function notFound(name: string, outcome: Extract<ChunksOutcome, { ok: false }>): string {
  const { lines, anchor, elsewhere, atEnd } = outcome;
  const shown = lines
    .slice(0, 8)
    .map((line) => `  ${cutChars(line, 200)}`)
    .join("\n");
  if (elsewhere === undefined) {
    return `These lines are not in ${name}, in this order:\n${shown}\nRead the file and write the patch for its current text.`;
  }
  if (atEnd) {
    return `These lines are at line ${elsewhere} of ${name}, not at its end as *** End of File says:\n${shown}\nLeave that marker out, or write the lines that the file ends with.`;
  }
  const after = anchor === undefined || lines.length === 1 ? "" : ` after "@@ ${cutChars(anchor, 100)}"`;
  return `These lines are at line ${elsewhere} of ${name}, above the place where the patch looks for them${after}:\n${shown}\nPut the chunks of a file in the order of its lines. A line after @@ must come before the lines of its chunk.`;
}

export type OperationState = "to do" | "done" | "not clear";

/** The state of one operation after an attempt whose outcome is unknown. */
export async function operationState(
  files: SandboxFiles,
  operation: PatchOperation,
): Promise<OperationState> {
  const path = workspacePath(operation.path).relative;
  const read = async (file: string): Promise<string | undefined> => {
    const answer = await readTextFile(files, file);
    return answer.ok ? answer.text : undefined;
  };
  if (operation.kind === "delete") {
    // A file that is not text still exists.
    const found = await files.stat(path);
    if (found.ok) return "to do";
    return found.reason === "not-found" ? "done" : "not clear";
  }
  const now = await read(path);
  if (operation.kind === "add") {
    if (now === undefined) return "to do";
    return now === operation.text ? "done" : "not clear";
  }
  const { chunks, moveTo } = operation;
  const fits = (text: string | undefined, lines: typeof chunks) =>
    text !== undefined && applyChunks(text, lines).ok;
  if (moveTo !== undefined) {
    if (now !== undefined) return "to do";
    const moved = await read(workspacePath(moveTo).relative);
    return fits(moved, reversed(chunks)) ? "done" : "not clear";
  }
  const isToDo = fits(now, chunks);
  if (isToDo === fits(now, reversed(chunks))) return "not clear";
  return isToDo ? "to do" : "done";
}
