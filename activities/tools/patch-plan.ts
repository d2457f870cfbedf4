/** Computes each file's new state from a parsed patch and the current files. Nothing is written here. */
import { join, parse } from "node:path/posix";
import { cutChars } from "../text/cut.ts";
import { readText, writeText } from "../text/encoding.ts";
import type { SandboxFiles } from "../sandbox/sandbox.ts";
import { accepted, ToolFailure } from "./failure.ts";
import { omissionLine } from "./omission.ts";
import { applyChunks, type ChunksOutcome } from "./patch-apply.ts";
import { createDrafts, type Draft, type Drafts, type FileState } from "./patch-drafts.ts";
import { changesLines, type PatchChunk, type PatchOperation } from "./patch-parse.ts";
import { showName, workspacePath } from "./paths.ts";
import type { RealPlace } from "./real-place.ts";
import { lookOf, lookRemark, showLook } from "./same-look.ts";
import { decodeText, rewritten } from "./text-file.ts";

export interface PatchPlan {
  /** Only files that the patch changes. */
  readonly files: readonly Draft[];
  readonly summary: readonly string[];
}

/** @throws ToolFailure if a part of the patch does not apply */
export async function planPatch(
  files: SandboxFiles,
  operations: readonly PatchOperation[],
): Promise<PatchPlan> {
  const drafts = createDrafts(files);
  const summary: string[] = [];
  for (const operation of operations) summary.push(await plan(drafts, operation));
  return { files: drafts.changed(), summary };
}

/** @returns a line that describes what was done */
async function plan(drafts: Drafts, operation: PatchOperation): Promise<string> {
  const path = workspacePath(operation.path).relative;
  const name = showName(path);
  switch (operation.kind) {
    case "add": {
      const draft = await newFile(drafts, path);
      refuseOmission(name, operation.text, "");
      const old = draft.before?.bytes;
      const { bytes, remark } =
        old === undefined
          ? { bytes: new TextEncoder().encode(operation.text), remark: "" }
          : rewritten(name, readText(old), operation.text);
      draft.after = { bytes };
      return `A ${name}${remark}`;
    }
    case "delete": {
      const place = await drafts.place(operation.path, true);
      const draft = await drafts.loadForRemoval(place);
      if (draft.after === undefined)
        throw new ToolFailure(`${name} cannot be deleted: there is no such file.`);
      draft.after = undefined;
      return `D ${name}${takenFor(path, place)}`;
    }
    case "update":
      return planUpdate(drafts, operation);
  }
}

async function planUpdate(
  drafts: Drafts,
  { path: given, moveTo, chunks }: Extract<PatchOperation, { kind: "update" }>,
): Promise<string> {
  const path = workspacePath(given).relative;
  const name = showName(path);
  const place = await drafts.place(given, true);
  const draft = place.content === undefined ? undefined : await drafts.load(place.content);
  if (draft?.after === undefined) {
    throw new ToolFailure(
      `${name} cannot be updated: there is no such file. To create it, use *** Add File.`,
    );
  }
  const after = { bytes: updated(name, draft.after, chunks), mode: draft.after.mode };
  const taken = takenFor(path, place);
  const target = moveTo === undefined ? path : workspacePath(moveTo).relative;
  const aim = moveTo === undefined ? place : await drafts.place(moveTo, false);
  if (moveTo === undefined || (aim.kind !== undefined && aim.content === place.content)) {
    draft.after = after;
    return `M ${name}${moveTo === undefined ? "" : ` (${showName(target)} is the same file)`}${taken}`;
  }
  const source = await drafts.loadForRemoval(place);
  const destination = await newFile(drafts, target, place.entry);
  source.after = undefined;
  destination.after = after;
  return `M ${name} -> ${showName(target)}${taken}`;
}

/**
 * The draft of a file that the patch makes. New means new: nothing may be there, and nothing that looks the same, but for the
 * entry that is moved.
 * @throws ToolFailure
 */
async function newFile(drafts: Drafts, path: string, moved?: string): Promise<Draft> {
  const name = showName(path);
  const { entry, kind } = await drafts.place(path, false);
  if (kind !== undefined) throw new ToolFailure(existing(name, kind));
  const { dir, base } = parse(entry);
  for (const other of await drafts.view.alike(dir || ".", base)) {
    const there = join(dir, other);
    if (there === moved) continue;
    throw new ToolFailure(
      `${showLook(path)} would look the same as ${showLook(there)}, which exists already. Use another name, or delete that one first.`,
    );
  }
  const draft = await drafts.load(entry);
  if (draft.before !== undefined && draft.before.bytes === undefined)
    throw new ToolFailure(
      `${name} is not a regular file that can be restored. Delete it in one patch and add the file in the next one.`,
    );
  return draft;
}

function existing(name: string, kind: string): string {
  if (kind === "folder") return `${name} is a folder, so no file can have that name.`;
  const what = kind === "file" ? "" : `, as a ${kind === "link" ? "link" : "pipe, socket or device"}`;
  return `${name} exists already${what}: a new file never replaces another one. Use *** Update File to change it, or put *** Delete File: ${name} before this to replace it.`;
}

function takenFor(given: string, { entry }: RealPlace): string {
  const base = parse(entry).base;
  if (base === parse(given).base || lookOf(base) !== lookOf(parse(given).base)) return "";
  return ` ${lookRemark(given, entry)}`;
}

function updated(name: string, { bytes }: FileState, chunks: readonly PatchChunk[]): Uint8Array {
  if (bytes === undefined) throw new ToolFailure(`${name} is not a text file.`);
  // Moved as it is, whatever it holds.
  if (chunks.length === 0) return bytes;
  const { text, form } = accepted(decodeText(name, bytes));
  const changed = applyChunks(text, chunks);
  if (!changed.ok) throw new ToolFailure(notFound(name, changed));
  const added = chunks.flatMap((chunk) => chunk.lines.filter((line) => line.kind === "add"));
  refuseOmission(name, added.map((line) => line.text).join("\n"), text);
  return changesLines(chunks) ? writeText(changed.text, form) : bytes;
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
