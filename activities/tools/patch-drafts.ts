/** The files that a patch touches, each once whatever names the patch gives it, as they are in the patch so far. */
import { join, relative } from "node:path/posix";
import type { FileEntry, SandboxFiles } from "../sandbox/sandbox.ts";
import { accepted, ToolFailure } from "./failure.ts";
import { showName, workspacePath } from "./paths.ts";
import { filesView, type RealPlace, realPlace, type View } from "./real-place.ts";
import { lookOf } from "./same-look.ts";
import { readWholeFile } from "./text-file.ts";

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

export interface Drafts {
  /** Where a path of the patch leads, after the operations so far. `byLook`: see `realPlace`. */
  place(given: string, byLook: boolean): Promise<RealPlace>;
  /** The file at a real path, or the place for a new one. @throws ToolFailure if it cannot be read whole */
  load(path: string): Promise<Draft>;
  /** A link itself is removed, not its target; binary and large files are removed like any other. */
  loadForRemoval(place: RealPlace): Promise<Draft>;
  changed(): Draft[];
  readonly view: View;
}

export function createDrafts(files: SandboxFiles): Drafts {
  const drafts = new Map<string, Draft>();
  const view = viewWith(filesView(files), drafts);
  const keep = (path: string, before: FileState | undefined): Draft => {
    const draft: Draft = { path, before, after: before };
    drafts.set(path, draft);
    return draft;
  };
  return {
    view,
    place: (given, byLook) => realPlace(view, workspacePath(given).relative, { byLook }),
    load: async (path) => {
      const known = drafts.get(path);
      if (known !== undefined) return known;
      const read = await readWholeFile(files, path);
      return keep(path, !read.ok && read.reason === "not-found" ? undefined : accepted(read));
    },
    loadForRemoval: async ({ entry, kind }) => {
      const known = drafts.get(entry);
      if (known !== undefined) return known;
      return keep(entry, await beforeRemoval(files, entry, kind));
    },
    changed: () => [...drafts.values()].filter(({ before, after }) => before !== after),
  };
}

/** The files as the patch has made them so far. */
function viewWith(disk: View, drafts: ReadonlyMap<string, Draft>): View {
  const at: View["at"] = async (path) => {
    const draft = drafts.get(path);
    if (draft !== undefined && draft.after !== draft.before)
      return draft.after === undefined ? undefined : { kind: "file" };
    const isNewFolder = [...drafts.values()].some((one) => one.after && one.path.startsWith(`${path}/`));
    return (await disk.at(path)) ?? (isNewFolder ? { kind: "folder" } : undefined);
  };
  return {
    at,
    alike: async (folder, name) => {
      const made = [...drafts.keys()].map((path) => relative(folder, path).split("/")[0] ?? "");
      const mine = made.filter((other) => lookOf(other) === lookOf(name));
      const there: string[] = [];
      for (const other of new Set([...(await disk.alike(folder, name)), ...mine]))
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
  const whole = await readWholeFile(files, path);
  if (!whole.ok && whole.reason === "failed") {
    const head = await files.read(path, { maxBytes: 1 });
    if (head.ok) return { bytes: undefined, hash: head.hash, mode: head.mode };
  }
  return accepted(whole);
}
