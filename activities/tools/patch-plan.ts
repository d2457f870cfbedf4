/** From a parsed patch to the writes that it takes: files as they will be, and what an earlier attempt has done. */
import { join, parse, relative } from "node:path/posix";
import { cutChars } from "../text/cut.ts";
import { readText, writeText } from "../text/encoding.ts";
import type { SandboxFiles, FileEntry } from "../sandbox/sandbox.ts";
import { accepted, ToolFailure } from "./tool.ts";
import { omissionLine } from "./text-match.ts";
import { applyChunks, type ChunksOutcome, reversed } from "./patch-apply.ts";
import { changesLines, type PatchChunk, type PatchOperation } from "./patch-parse.ts";
import { showName, workspacePath } from "./paths.ts";
import {
  type RealPlace,
  filesView,
  realPlace,
  type FilesView,
  toLook,
  lookRemark,
  showLook,
} from "./real-path.ts";
import { decodeText, rewritten, readWholeFile, readTextFile } from "./text-file.ts";

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
      const realPath = await drafts.resolve(operation.path, true);
      const draft = await drafts.loadForRemoval(realPath);
      if (draft.after === undefined)
        throw new ToolFailure(`${name} cannot be deleted: there is no such file.`);
      draft.after = undefined;
      return `D ${name}${takenFor(path, realPath)}`;
    }
    case "update":
      return planUpdate(drafts, operation);
  }
}

async function planUpdate(
  drafts: Drafts,
  { path: inputPath, moveTo, chunks }: Extract<PatchOperation, { kind: "update" }>,
): Promise<string> {
  const path = workspacePath(inputPath).relative;
  const name = showName(path);
  const realPath = await drafts.resolve(inputPath, true);
  const draft = realPath.content === undefined ? undefined : await drafts.load(realPath.content);
  if (draft?.after === undefined) {
    throw new ToolFailure(
      `${name} cannot be updated: there is no such file. To create it, use *** Add File.`,
    );
  }
  const after = { bytes: updated(name, draft.after, chunks), mode: draft.after.mode };
  const remark = takenFor(path, realPath);
  const target = moveTo === undefined ? path : workspacePath(moveTo).relative;
  const aim = moveTo === undefined ? realPath : await drafts.resolve(moveTo, false);
  if (moveTo === undefined || (aim.kind !== undefined && aim.content === realPath.content)) {
    draft.after = after;
    return `M ${name}${moveTo === undefined ? "" : ` (${showName(target)} is the same file)`}${remark}`;
  }
  const source = await drafts.loadForRemoval(realPath);
  const destination = await newFile(drafts, target, realPath.entry);
  source.after = undefined;
  destination.after = after;
  return `M ${name} -> ${showName(target)}${remark}`;
}

/**
 * The draft of a file that the patch makes. New means new: nothing may be there, and nothing that looks the same, but for the
 * entry that is moved.
 * @throws ToolFailure
 */
async function newFile(drafts: Drafts, path: string, moved?: string): Promise<Draft> {
  const name = showName(path);
  const { entry, kind } = await drafts.resolve(path, false);
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

function takenFor(inputPath: string, { entry }: RealPlace): string {
  const base = parse(entry).base;
  if (base === parse(inputPath).base || toLook(base) !== toLook(parse(inputPath).base)) return "";
  return ` ${lookRemark(inputPath, entry)}`;
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
  const excerpt = lines
    .slice(0, 8)
    .map((line) => `  ${cutChars(line, 200)}`)
    .join("\n");
  if (elsewhere === undefined) {
    return `These lines are not in ${name}, in this order:\n${excerpt}\nRead the file and write the patch for its current text.`;
  }
  if (atEnd) {
    return `These lines are at line ${elsewhere} of ${name}, not at its end as *** End of File says:\n${excerpt}\nLeave that marker out, or write the lines that the file ends with.`;
  }
  const after = anchor === undefined || lines.length === 1 ? "" : ` after "@@ ${cutChars(anchor, 100)}"`;
  return `These lines are at line ${elsewhere} of ${name}, above the place where the patch looks for them${after}:\n${excerpt}\nPut the chunks of a file in the order of its lines. A line after @@ must come before the lines of its chunk.`;
}

/** The files that a patch touches, each once whatever names the patch gives it, as they are in the patch so far. */
export interface FileState {
  /** Undefined if the contents cannot be restored: a link, a device, a file too large to hold. */
  readonly bytes: Uint8Array | undefined;
  /** Lets a write detect that someone else wrote; undefined for what is not a file, or not written yet. */
  readonly hash?: string;
  /** Undefined: keep the existing file's mode. */
  readonly mode?: number | undefined;
}

/** `after` is the same object as `before` until the patch changes it; undefined means no file. `path` has no links. */
export interface Draft {
  readonly path: string;
  readonly before: FileState | undefined;
  after: FileState | undefined;
}

interface Drafts {
  /** Where a path of the patch leads, after the operations so far. `byLook`: see `realPlace`. */
  resolve(inputPath: string, byLook: boolean): Promise<RealPlace>;
  /** The file at a real path, or the place for a new one. @throws ToolFailure if it cannot be read whole */
  load(path: string): Promise<Draft>;
  /** A link itself is removed, not its target; binary and large files are removed like any other. */
  loadForRemoval(realPath: RealPlace): Promise<Draft>;
  changed(): Draft[];
  readonly view: FilesView;
}

function createDrafts(files: SandboxFiles): Drafts {
  const drafts = new Map<string, Draft>();
  const view = viewWith(filesView(files), drafts);
  const keep = (path: string, before: FileState | undefined): Draft => {
    const draft: Draft = { path, before, after: before };
    drafts.set(path, draft);
    return draft;
  };
  return {
    view,
    resolve: (inputPath, byLook) => realPlace(view, workspacePath(inputPath).relative, { byLook }),
    load: async (path) => {
      const draft = drafts.get(path);
      if (draft !== undefined) return draft;
      const read = await readWholeFile(files, path);
      return keep(path, !read.ok && read.reason === "not-found" ? undefined : accepted(read));
    },
    loadForRemoval: async ({ entry, kind }) => {
      const draft = drafts.get(entry);
      if (draft !== undefined) return draft;
      return keep(entry, await beforeRemoval(files, entry, kind));
    },
    changed: () => [...drafts.values()].filter(({ before, after }) => before !== after),
  };
}

/** The files as the patch has made them so far. */
function viewWith(disk: FilesView, drafts: ReadonlyMap<string, Draft>): FilesView {
  const at: FilesView["at"] = async (path) => {
    const draft = drafts.get(path);
    if (draft !== undefined && draft.after !== draft.before)
      return draft.after === undefined ? undefined : { kind: "file" };
    const isNewFolder = [...drafts.values()].some((one) => one.after && one.path.startsWith(`${path}/`));
    return (await disk.at(path)) ?? (isNewFolder ? { kind: "folder" } : undefined);
  };
  return {
    at,
    alike: async (folder, name) => {
      const newNames = [...drafts.keys()].map((path) => relative(folder, path).split("/")[0] ?? "");
      const newAlike = newNames.filter((other) => toLook(other) === toLook(name));
      const there: string[] = [];
      for (const other of new Set([...(await disk.alike(folder, name)), ...newAlike]))
        if ((await at(join(folder, other))) !== undefined) there.push(other);
      return there;
    },
  };
}

async function beforeRemoval(
  files: SandboxFiles,
  path: string,
  kind: FileEntry["kind"] | undefined,
): Promise<FileState | undefined> {
  if (kind === undefined) return undefined;
  if (kind === "folder") throw new ToolFailure(`${showName(path)} is a folder: remove it with bash.`);
  if (kind !== "file") return { bytes: undefined };
  const file = await readWholeFile(files, path);
  if (!file.ok && file.reason === "failed") {
    const head = await files.read(path, { maxBytes: 1 });
    if (head.ok) return { bytes: undefined, hash: head.hash, mode: head.mode };
  }
  return accepted(file);
}

/** What an attempt of a patch whose outcome is unknown has done. */
export type OperationState = "to do" | "done" | "not clear";

/** The state of one operation, as the files show it. */
export async function operationState(
  files: SandboxFiles,
  operation: PatchOperation,
): Promise<OperationState> {
  const find = (inputPath: string) =>
    realPlace(filesView(files), workspacePath(inputPath).relative, { byLook: true });
  const read = async (file: string | undefined): Promise<string | undefined> => {
    if (file === undefined) return undefined;
    const answer = await readTextFile(files, file);
    return answer.ok ? answer.text : undefined;
  };
  const realPath = await find(operation.path);
  // A file that is not text still exists.
  if (operation.kind === "delete") return realPath.kind === undefined ? "done" : "to do";
  const now = await read(realPath.content);
  if (operation.kind === "add") {
    if (realPath.kind === undefined) return "to do";
    return now === operation.text ? "done" : "not clear";
  }
  const { chunks, moveTo } = operation;
  const aim = moveTo === undefined ? realPath : await find(moveTo);
  const isMove = aim.kind === undefined ? moveTo !== undefined : aim.content !== realPath.content;
  if (isMove && realPath.kind !== undefined) {
    // Written there and not yet removed here?
    const planned = now === undefined ? undefined : applyChunks(now, chunks);
    return planned?.ok === true && planned.text === (await read(aim.content)) ? "not clear" : "to do";
  }
  const fits = (text: string | undefined, lines: typeof chunks) =>
    text !== undefined && applyChunks(text, lines).ok;
  if (isMove) return fits(await read(aim.content), reversed(chunks)) ? "done" : "not clear";
  const isToDo = fits(now, chunks);
  if (isToDo === fits(now, reversed(chunks))) return "not clear";
  return isToDo ? "to do" : "done";
}
