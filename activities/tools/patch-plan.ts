/** From a parsed patch and the files as they are to what each file shall be. Nothing is written here. */
import { cutChars } from "../contract/cut-text.ts";
import type { SandboxFiles } from "../sandbox/sandbox.ts";
import { omissionLine } from "./omission.ts";
import { applyChunks, type ChunksOutcome, reversed } from "./patch-apply.ts";
import { changesLines, type PatchOperation } from "./patch-parse.ts";
import { showName, workspacePath } from "./paths.ts";
import { decodeTextFile, encodeTextFile, readTextFile, readWholeFile } from "./text-file.ts";

/** What a file was and what it shall be; undefined stands for no file. */
export interface PlannedFile {
  readonly path: string;
  readonly before: FileBefore | undefined;
  readonly after: FileAfter | undefined;
}

export interface FileBefore {
  /** Undefined where it cannot be put back: a link, a device, a file too large to hold. */
  readonly bytes: Uint8Array | undefined;
  /** By which writing makes sure that no one else wrote; undefined for what is no file. */
  readonly hash: string | undefined;
  readonly mode: number | undefined;
}

export interface FileAfter {
  readonly text: string;
  readonly bom: boolean;
  /** Of a file that was moved; undefined: as the file there has it. */
  readonly mode?: number;
}

export type PatchPlan =
  | { readonly ok: true; readonly files: readonly PlannedFile[]; readonly summary: readonly string[] }
  | { readonly ok: false; readonly message: string };

interface Draft {
  readonly path: string;
  readonly before: FileBefore | undefined;
  /** Undefined as long as the patch has left it alone. */
  change: { readonly after: FileAfter | undefined } | undefined;
}

class Refused extends Error {}

/** Only files that the patch changes are in the plan. */
export async function planPatch(
  files: SandboxFiles,
  operations: readonly PatchOperation[],
): Promise<PatchPlan> {
  const drafts = new Map<string, Draft>();
  const summary: string[] = [];
  try {
    for (const operation of operations) summary.push(await plan(files, drafts, operation));
  } catch (error) {
    if (error instanceof Refused) return { ok: false, message: error.message };
    throw error;
  }
  const planned = [...drafts.values()].flatMap(({ path, before, change }) =>
    change === undefined || (before === undefined && change.after === undefined)
      ? []
      : [{ path, before, after: change.after }],
  );
  return { ok: true, files: planned, summary };
}

async function plan(
  files: SandboxFiles,
  drafts: Map<string, Draft>,
  operation: PatchOperation,
): Promise<string> {
  const path = resolve(operation.path);
  const name = showName(path);
  switch (operation.kind) {
    case "add": {
      const draft = await load(files, drafts, path);
      if (draft.before !== undefined && draft.before.hash === undefined)
        throw new Refused(
          `${name} is no regular file. Delete it in one patch and add the file in the next one.`,
        );
      const now = textOf(draft);
      refuseOmission(name, operation.text, now.ok ? now.file.text : "");
      draft.change = { after: { text: operation.text, bom: false } };
      return `A ${name}`;
    }
    case "delete": {
      const draft = await loadForRemoval(files, drafts, path);
      if (!exists(draft)) throw new Refused(`${name} is to be deleted, but there is no such file.`);
      draft.change = { after: undefined };
      return `D ${name}`;
    }
    case "update": {
      const draft = await load(files, drafts, path);
      if (!exists(draft)) {
        throw new Refused(
          `${name} is to be updated, but there is no such file. To make it use *** Add File.`,
        );
      }
      const now = textOf(draft);
      if (!now.ok) throw new Refused(now.message);
      const { text: old, bom } = now.file;
      const changed = applyChunks(old, operation.chunks);
      if (!changed.ok) throw new Refused(notFound(name, changed));
      const added = operation.chunks.flatMap((chunk) => chunk.lines.filter((line) => line.kind === "add"));
      refuseOmission(name, added.map((line) => line.text).join("\n"), old);
      const text = changesLines(operation.chunks) ? changed.text : old;
      if (operation.moveTo === undefined) {
        draft.change = { after: { text, bom, ...modeOf(draft.change?.after) } };
        return `M ${name}`;
      }
      const target = resolve(operation.moveTo);
      const destination = await load(files, drafts, target);
      const mode = modeOf(draft.change === undefined ? draft.before : draft.change.after);
      draft.change = { after: undefined };
      destination.change = { after: { text, bom, ...mode } };
      return `M ${name} -> ${showName(target)}`;
    }
  }
}

function exists({ before, change }: Draft): boolean {
  return (change === undefined ? before : change.after) !== undefined;
}

function modeOf(file: { readonly mode?: number | undefined } | undefined): { readonly mode?: number } {
  return file?.mode === undefined ? {} : { mode: file.mode };
}

type TextAnswer =
  | { readonly ok: true; readonly file: { readonly text: string; readonly bom: boolean } }
  | { readonly ok: false; readonly message: string };

/** The text as the patch has it so far; empty where there is no file. */
function textOf({ path, before, change }: Draft): TextAnswer {
  if (change !== undefined) return { ok: true, file: change.after ?? { text: "", bom: false } };
  if (before === undefined) return { ok: true, file: { text: "", bom: false } };
  const { bytes, hash, mode } = before;
  if (bytes === undefined || hash === undefined)
    return { ok: false, message: `${showName(path)} is no text file.` };
  return decodeTextFile(path, { bytes, hash, mode });
}

async function load(files: SandboxFiles, drafts: Map<string, Draft>, path: string): Promise<Draft> {
  const known = drafts.get(path);
  if (known !== undefined) return known;
  const read = await readWholeFile(files, path);
  if (!read.ok && read.reason !== "not-found") throw new Refused(read.message);
  const draft: Draft = { path, before: read.ok ? read.file : undefined, change: undefined };
  drafts.set(path, draft);
  return draft;
}

/** A link is removed itself, and what is no text, or is large, is removed like any other file. */
async function loadForRemoval(files: SandboxFiles, drafts: Map<string, Draft>, path: string): Promise<Draft> {
  const known = drafts.get(path);
  if (known !== undefined) return known;
  const found = await files.stat(path);
  if (!found.ok) {
    if (found.reason === "not-found") return { path, before: undefined, change: undefined };
    throw new Refused(found.message);
  }
  if (found.kind === "folder") throw new Refused(`${showName(path)} is a folder: remove it with bash.`);
  const draft: Draft = { path, before: await beforeRemoval(files, path, found.kind), change: undefined };
  drafts.set(path, draft);
  return draft;
}

async function beforeRemoval(
  files: SandboxFiles,
  path: string,
  kind: "file" | "link" | "other",
): Promise<FileBefore> {
  if (kind !== "file") return { bytes: undefined, hash: undefined, mode: undefined };
  const whole = await readWholeFile(files, path);
  if (whole.ok) return whole.file;
  const { reason, message } = whole;
  const head = reason === "failed" ? await files.read(path, { maxBytes: 1 }) : undefined;
  if (head?.ok !== true) throw new Refused(message);
  return { bytes: undefined, hash: head.hash, mode: head.mode };
}

function resolve(path: string): string {
  const where = workspacePath(path);
  if (!where.ok) throw new Refused(where.message);
  return where.relative;
}

function refuseOmission(name: string, text: string, before: string): void {
  const line = omissionLine(text, before);
  if (line === undefined) return;
  throw new Refused(
    `The change of ${name} holds "${cutChars(line, 100)}", which stands for text that was left out.`,
  );
}

function notFound(name: string, outcome: Extract<ChunksOutcome, { ok: false }>): string {
  const { lines, anchor, elsewhere, atEnd } = outcome;
  const shown = lines
    .slice(0, 8)
    .map((line) => `  ${cutChars(line, 200)}`)
    .join("\n");
  if (elsewhere !== undefined && atEnd) {
    return `These lines stand at line ${elsewhere} of ${name}, not at its end as *** End of File says:\n${shown}\nLeave that marker out, or write the lines that the file ends with.`;
  }
  const after = anchor === undefined || lines.length === 1 ? "" : ` after "@@ ${cutChars(anchor, 100)}"`;
  if (elsewhere !== undefined) {
    return `These lines stand at line ${elsewhere} of ${name}, above the place where the patch looks for them${after}:\n${shown}\nPut the chunks of a file in the order of its lines, and a line after @@ above what it leads to.`;
  }
  return `These lines are not in ${name}, in this order:\n${shown}\nRead the file and write the patch against it as it stands now.`;
}

/** How one operation stands after an attempt that nobody knows the end of. */
export async function standOf(
  files: SandboxFiles,
  operation: PatchOperation,
): Promise<"to do" | "done" | "not clear"> {
  const read = async (path: string): Promise<string | undefined> => {
    const answer = await readTextFile(files, resolve(path));
    return answer.ok ? answer.file.text : undefined;
  };
  const now = await read(operation.path);
  switch (operation.kind) {
    case "add":
      return now === operation.text ? "done" : now === undefined ? "to do" : "not clear";
    case "delete": {
      // What is no text is there all the same.
      const found = await files.stat(resolve(operation.path));
      if (found.ok) return "to do";
      return found.reason === "not-found" ? "done" : "not clear";
    }
    case "update": {
      if (operation.moveTo !== undefined && now === undefined) {
        const moved = await read(operation.moveTo);
        return moved !== undefined && applyChunks(moved, reversed(operation.chunks)).ok
          ? "done"
          : "not clear";
      }
      if (now === undefined) return "not clear";
      if (operation.moveTo !== undefined) return "to do";
      const forward = applyChunks(now, operation.chunks).ok;
      const backward = applyChunks(now, reversed(operation.chunks)).ok;
      return forward === backward ? "not clear" : forward ? "to do" : "done";
    }
  }
}

export function bytesOf({ text, bom }: FileAfter): Uint8Array {
  return encodeTextFile(text, bom);
}
