/** From a parsed patch and the files as they are to what each file shall be. Nothing is written here. */
import type { BoxFiles } from "../sandbox/sandbox.ts";
import { omissionLine } from "./omission.ts";
import { applyChunks, reversed } from "./patch-apply.ts";
import type { PatchOperation } from "./patch-parse.ts";
import { showName, workspacePath } from "./paths.ts";
import { encodeTextFile, readTextFile } from "./text-file.ts";

/** What a file was and what it shall be; undefined stands for no file. */
export interface PlannedFile {
  readonly path: string;
  readonly before: FileVersion | undefined;
  readonly after: FileVersion | undefined;
}

export interface FileVersion {
  readonly text: string;
  readonly bom: boolean;
  /** Of `before` only: the hash by which writing makes sure that nobody else wrote. */
  readonly hash?: string;
}

export type PatchPlan =
  | { readonly ok: true; readonly files: readonly PlannedFile[]; readonly summary: readonly string[] }
  | { readonly ok: false; readonly message: string };

interface Draft {
  readonly before: FileVersion | undefined;
  after: FileVersion | undefined;
}

class Refused extends Error {}

export async function planPatch(files: BoxFiles, operations: readonly PatchOperation[]): Promise<PatchPlan> {
  const drafts = new Map<string, Draft>();
  const summary: string[] = [];
  try {
    for (const operation of operations) summary.push(await plan(files, drafts, operation));
  } catch (error) {
    if (error instanceof Refused) return { ok: false, message: error.message };
    throw error;
  }
  return { ok: true, files: [...drafts].map(([path, draft]) => ({ path, ...draft })), summary };
}

async function plan(files: BoxFiles, drafts: Map<string, Draft>, operation: PatchOperation): Promise<string> {
  const path = resolve(operation.path);
  const draft = await load(files, drafts, path);
  const name = showName(path);
  switch (operation.kind) {
    case "add":
      refuseOmission(name, operation.text, draft.after?.text ?? "");
      draft.after = { text: operation.text, bom: false };
      return `A ${name}`;
    case "delete":
      if (draft.after === undefined)
        throw new Refused(`${name} is to be deleted, but there is no such file.`);
      draft.after = undefined;
      return `D ${name}`;
    case "update": {
      const { after } = draft;
      if (after === undefined) {
        throw new Refused(
          `${name} is to be updated, but there is no such file. To make it use *** Add File.`,
        );
      }
      const changed = applyChunks(after.text, operation.chunks);
      if (!changed.ok) throw new Refused(notFound(name, changed.lines, changed.anchor));
      const added = operation.chunks.flatMap((chunk) => chunk.lines.filter((line) => line.kind === "add"));
      refuseOmission(name, added.map((line) => line.text).join("\n"), after.text);
      const text = operation.chunks.length === 0 ? after.text : changed.text;
      if (operation.moveTo === undefined) {
        draft.after = { text, bom: after.bom };
        return `M ${name}`;
      }
      const target = resolve(operation.moveTo);
      const destination = await load(files, drafts, target);
      draft.after = undefined;
      destination.after = { text, bom: after.bom };
      return `M ${name} -> ${showName(target)}`;
    }
  }
}

async function load(files: BoxFiles, drafts: Map<string, Draft>, path: string): Promise<Draft> {
  const known = drafts.get(path);
  if (known !== undefined) return known;
  const read = await readTextFile(files, path);
  if (!read.ok && read.reason !== "not-found") throw new Refused(read.message);
  const before = read.ok ? read.file : undefined;
  const draft: Draft = { before, after: before };
  drafts.set(path, draft);
  return draft;
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
    `The change of ${name} holds "${line.slice(0, 100)}", which stands for text that was left out.`,
  );
}

function notFound(name: string, lines: readonly string[], anchor: string | undefined): string {
  const shown = lines.slice(0, 8).map((line) => `  ${line.slice(0, 200)}`);
  const after = anchor === undefined || lines.length === 1 ? "" : ` after "@@ ${anchor.slice(0, 100)}"`;
  return `These lines are not in ${name}${after}, in this order:\n${shown.join("\n")}\nRead the file and write the patch against it as it stands now.`;
}

/** How one operation stands after an attempt that nobody knows the end of. */
export async function standOf(
  files: BoxFiles,
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
    case "delete":
      return now === undefined ? "done" : "to do";
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

export function bytesOf(version: FileVersion): Uint8Array {
  return encodeTextFile(version.text, version.bom);
}
