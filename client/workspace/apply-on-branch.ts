/**
 * Applies a patch on a new branch of a person's checkout. What it makes of the files is computed first, beside the checkout: if it
 * does not fit, or would touch uncommitted changes, nothing is changed. Files are written by bytes, and staged through Git's own
 * filters. No hook runs, because an agent wrote the change.
 */
import { lstatSync, mkdirSync, rmdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { access, constants } from "node:fs/promises";
import { join, posix } from "node:path";
import { bytesOfText, textOfBytes } from "../../activities/store/path-text.ts";
import { notPossible, unwritable } from "../console/errors.ts";
import { visible } from "../console/format.ts";
import { onDisk, patchedFiles, type PatchedFile } from "./patched-files.ts";
import { git, mustGit, words } from "./persons-git.ts";

const MAX_NAMED = 20;

export type Applied =
  | { readonly committed: true }
  /** It is staged. `why`: Git's words. `messageFile`: the message, for `git commit -F`. */
  | { readonly committed: false; readonly why: string; readonly messageFile: string };

/**
 * @param folder of the checkout: the patch's paths are relative to it
 * @returns whether the change could be committed; otherwise it is staged
 * @throws ClientError (impossible)
 */
export async function applyOnBranch(
  folder: string,
  change: { readonly patch: string; readonly branch: string; readonly message: string },
): Promise<Applied> {
  const { patch, branch, message } = change;
  const { top, gitFolder, prefix } = await findCheckout(folder);
  if ((await git(top, ["rev-parse", "--verify", "--quiet", `refs/heads/${branch}`])).code === 0)
    throw notPossible(
      `There is a branch ${branch} already: nothing was changed.`,
      "Choose another: --branch NAME",
    );
  const before = await git(top, ["symbolic-ref", "--quiet", "--short", "HEAD"]);
  const head = String(before.code === 0 ? before.out : await mustGit(top, ["rev-parse", "HEAD"])).trim();
  // A file that was only touched has no change. It ends with 1 if others have.
  await git(top, ["update-index", "-q", "--refresh"]);
  const files = await patchedFiles(top, prefix, patch);
  if ("refused" in files) throw doesNotFit(files.refused);
  const touched = await uncommitted(top, files);
  if (touched !== "") throw doesNotFit(touched);
  await mustGit(top, ["checkout", "--quiet", "-b", branch]);
  try {
    await write(top, prefix, files);
  } catch (error) {
    await undo(top, prefix, { files, head, branch });
    throw notPossible(
      `The change could not be applied; you are on ${head} as before.\n${(error as Error).message}`,
    );
  }
  if ((await git(top, ["diff-index", "--cached", "--quiet", "HEAD"])).code === 0) {
    await undo(top, prefix, { files, head, branch });
    throw notPossible(
      "Git stores the same as before: the change is only in what its filters make of the files, such as line ends. Nothing was changed.",
    );
  }
  const committed = await git(top, ["commit", "--quiet", "--no-verify", "-F", "-"], message);
  if (committed.code === 0) return { committed: true };
  const messageFile = join(gitFolder, "longhaul-message");
  writeFileSync(messageFile, message);
  return { committed: false, why: words(committed), messageFile };
}

const doesNotFit = (why: string) =>
  notPossible(
    `The change does not apply to what is checked out, or would touch uncommitted changes: nothing was changed.\n${why}`,
    "Check out the commit that the session started from, without uncommitted changes in these files.",
  );

/** @throws ClientError (impossible) if it is none, or cannot be written */
async function findCheckout(folder: string) {
  const place = await git(folder, ["rev-parse", "--show-toplevel", "--absolute-git-dir", "--show-prefix"]);
  if (place.code !== 0)
    throw notPossible(
      `${folder} is not a Git checkout: ${words(place)}`,
      "Go to your checkout, or copy the files instead: longhaul pull ID DIR",
    );
  const [top = folder, gitFolder = folder, prefix = ""] = String(place.out).split("\n");
  for (const target of [top, gitFolder])
    await access(target, constants.W_OK).catch((error: unknown) => {
      throw unwritable(
        target,
        error,
        "Go to a checkout of your own, or copy the files instead: longhaul pull ID DIR",
      );
    });
  return { top, gitFolder, prefix };
}

const listed = (files: readonly PatchedFile[]): Buffer =>
  Buffer.concat(files.flatMap(({ path }) => [bytesOfText(path), Buffer.alloc(1)]));

const FROM_INPUT = ["--pathspec-from-file=-", "--pathspec-file-nul"];

/** What speaks against writing these files: uncommitted changes, or a file there that is not in Git. Empty if nothing does. */
async function uncommitted(top: string, files: readonly PatchedFile[]): Promise<string> {
  const asked = [
    "status",
    "--porcelain",
    "-z",
    "--no-renames",
    "--untracked-files=no",
    "--ignore-submodules=all",
  ];
  const changed = new Set(namesIn(await mustGit(top, asked)).map((line) => line.slice(3)));
  const tracked = new Set(namesIn(await mustGit(top, ["ls-files", "-z"])));
  const found = files.flatMap(({ path }) => {
    if (changed.has(path)) return [`${path}: has uncommitted changes`];
    const there = lstatSync(onDisk(top, path), { throwIfNoEntry: false });
    const isOwn = there !== undefined && !there.isDirectory() && !tracked.has(path);
    return isOwn ? [`${path}: already exists in working directory`] : [];
  });
  return found.slice(0, MAX_NAMED).map(visible).join("\n");
}

const namesIn = (out: Buffer): string[] =>
  textOfBytes(out)
    .split("\0")
    .filter((name) => name !== "");

/** @param prefix the current folder, which stays */
async function write(top: string, prefix: string, files: readonly PatchedFile[]): Promise<void> {
  for (const { path, content } of files) remove(top, prefix, { path, withFolders: content === undefined });
  for (const { path, form, content } of files) {
    if (content === undefined || form === "stored") continue;
    const place = onDisk(top, path);
    mkdirSync(onDisk(top, posix.dirname(path)), { recursive: true });
    if (content.mode === "120000") symlinkSync(content.bytes, place);
    else writeFileSync(place, content.bytes, { mode: content.mode === "100755" ? 0o777 : 0o666 });
  }
  await stage(top, files);
}

/** Removes a file and, if asked, the folders that are empty then. */
function remove(
  top: string,
  prefix: string,
  { path, withFolders }: { readonly path: string; readonly withFolders: boolean },
): void {
  try {
    rmSync(onDisk(top, path), { force: true });
    let around = posix.dirname(path);
    for (; withFolders && around !== "." && !prefix.startsWith(`${around}/`); around = posix.dirname(around))
      rmdirSync(onDisk(top, around));
  } catch {
    // Not empty, or a file is where a folder is to be: then writing says so.
  }
}

/** Git's filters make what is stored of the files' bytes; what is stored already is checked out through them. */
async function stage(top: string, files: readonly PatchedFile[]): Promise<void> {
  const removed = files.filter(({ content }) => content === undefined);
  const [stored, written] = [
    files.filter(({ form, content }) => content !== undefined && form === "stored"),
    files.filter(({ form, content }) => content !== undefined && form === "bytes"),
  ];
  const update = ["update-index", "-z"];
  if (removed.length > 0) await mustGit(top, [...update, "--force-remove", "--stdin"], listed(removed));
  if (written.length > 0)
    await mustGit(top, ["--literal-pathspecs", "add", "--force", ...FROM_INPUT], listed(written));
  const entries: Buffer[] = [];
  for (const { path, content } of stored) {
    const blob = String(await mustGit(top, ["hash-object", "-w", "--stdin"], content?.bytes ?? "")).trim();
    entries.push(Buffer.from(`${content?.mode} ${blob}\t`), bytesOfText(path), Buffer.alloc(1));
  }
  if (stored.length > 0) {
    await mustGit(top, [...update, "--index-info"], Buffer.concat(entries));
    await mustGit(top, ["checkout-index", "-f", "-u", "-z", "--stdin"], listed(stored));
  }
  // Where the file system knows no such permission, only the index has it.
  for (const [mode, sign] of [
    ["100755", "+x"],
    ["100644", "-x"],
  ] as const) {
    const those = written.filter(({ content }) => content?.mode === mode);
    if (those.length > 0) await mustGit(top, [...update, `--chmod=${sign}`, "--stdin"], listed(those));
  }
}

/** Makes the files what HEAD has: they had no other changes. */
async function undo(
  top: string,
  prefix: string,
  {
    files,
    head,
    branch,
  }: { readonly files: readonly PatchedFile[]; readonly head: string; readonly branch: string },
): Promise<void> {
  for (const { path } of files) remove(top, prefix, { path, withFolders: false });
  await mustGit(top, ["--literal-pathspecs", "reset", "--quiet", ...FROM_INPUT], listed(files));
  const tracked = new Set(namesIn(await mustGit(top, ["ls-files", "-z"])));
  const ours = listed(files.filter(({ path }) => tracked.has(path)));
  await mustGit(top, ["checkout-index", "-f", "-u", "-z", "--stdin"], ours);
  await mustGit(top, ["checkout", "--quiet", head]);
  await mustGit(top, ["branch", "--quiet", "-D", branch]);
}
