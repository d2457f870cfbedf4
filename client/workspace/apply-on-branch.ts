/**
 * Applies a patch on a new branch of a person's checkout. What it makes of the files, and the commit, are made beside the checkout: if
 * it does not fit, or would touch uncommitted changes, nothing is changed. Files are written by bytes, and staged through Git's own
 * filters. No hook runs, because an agent wrote the change.
 */
import { existsSync, writeFileSync, copyFileSync, mkdirSync, symlinkSync } from "node:fs";
import { access, constants } from "node:fs/promises";
import { join, resolve, posix } from "node:path";
import { textOfBytes, bytesOfText } from "../../activities/store/path-text.ts";
import { ClientError, notPossible, unwritable } from "../console/errors.ts";
import { visible } from "../console/format.ts";
import {
  begin,
  checkedOut,
  checkOutBranch,
  leaveCheckout,
  nameOfChange,
  putFiles,
  takeCheckout,
  undo,
  unfinished,
  type Plan,
  preparedGit,
  preparedTree,
} from "./begun-apply.ts";
import { refuseLocked, personsGit, mustGit, describeGit, type Checkout } from "./persons-git.ts";
import { lookAt, onDisk, patchedFiles, listed, type PatchedFile } from "./patched-files.ts";
import { cutChars, shorten } from "../../activities/text/cut.ts";

const MAX_NAMED = 20;
/** What Git has in its folder in the middle of something, what that is, and how it is given up. */
const UNFINISHED: readonly (readonly [name: string, what: string, abort: string])[] = [
  ["MERGE_HEAD", "A merge", "git merge --abort"],
  ["CHERRY_PICK_HEAD", "A cherry-pick", "git cherry-pick --abort"],
  ["REVERT_HEAD", "A revert", "git revert --abort"],
  ["rebase-merge", "A rebase", "git rebase --abort"],
  ["rebase-apply/applying", "`git am`", "git am --abort"],
  ["rebase-apply", "A rebase", "git rebase --abort"],
  [
    "sequencer",
    "A cherry-pick or revert of several commits",
    "git cherry-pick --abort, or git revert --abort",
  ],
  ["BISECT_LOG", "A bisect", "git bisect reset"],
];

/** Otherwise it is staged. `why`: Git's words. `messageFile`: the message, for `git commit -F`. */
export type Applied = Plan["applied"];

interface Change {
  readonly patch: string;
  readonly branch: string;
  readonly message: string;
}

/**
 * An earlier call that was killed in the middle is finished first.
 * @param folder of the checkout: the patch's paths are relative to it
 * @returns whether the change could be committed; otherwise it is staged
 * @throws ClientError (impossible)
 */
export async function applyOnBranch(folder: string, change: Change): Promise<Applied> {
  const checkout = await findCheckout(folder);
  const unfinishedPlan = await takeCheckout(checkout);
  try {
    if (unfinishedPlan !== undefined) return await goOn(checkout, unfinishedPlan, nameOf(checkout, change));
    const plan = await prepare(checkout, change);
    begin(checkout, plan);
    await applyPlan(checkout, plan);
    return plan.applied;
  } finally {
    leaveCheckout(checkout);
  }
}

const nameOf = ({ prefix }: Checkout, { patch, branch, message }: Change) =>
  nameOfChange([prefix, patch, branch, message]);

/** Finishes what a killed process began. */
async function goOn(checkout: Checkout, plan: Plan, change: string): Promise<Applied> {
  try {
    refuseLocked(checkout, plan.branch);
    await putFiles(checkout, plan, (paths) => uncommitted(checkout.top, paths));
    await checkOutBranch(checkout, plan);
  } catch (error) {
    throw unfinished(checkout, plan, wordsOf(error));
  }
  if (plan.change === change) return plan.applied;
  throw notPossible(
    `An earlier \`longhaul apply\` was killed while it put ${plan.branch} here. It is finished now, and ${plan.branch} is checked out. Nothing else was applied.`,
    "To apply this change too, check out the commit that it is for, and run the command again.",
  );
}

/** Does what is prepared, or leaves the checkout as it was. */
async function applyPlan(checkout: Checkout, plan: Plan): Promise<void> {
  try {
    await putFiles(checkout, plan, (paths) => uncommitted(checkout.top, paths));
  } catch (error) {
    const why = (error as Error).message;
    await undo(checkout, plan).catch((failed: unknown) => {
      throw unfinished(checkout, plan, `${why}\n${(failed as Error).message}`);
    });
    throw notPossible(`The change could not be applied; you are on ${plan.from} as before.\n${why}`);
  }
  await checkOutBranch(checkout, plan).catch((error: unknown) => {
    throw unfinished(checkout, plan, wordsOf(error));
  });
}

const wordsOf = (error: unknown): string =>
  [(error as Error).message, error instanceof ClientError ? (error.fix ?? "") : ""].join("\n").trim();

/** Makes the change's files and its commit, in Git's folder. Nothing that the person sees is changed. */
async function prepare(checkout: Checkout, change: Change): Promise<Plan> {
  const { top, prefix } = checkout;
  const { patch, branch } = change;
  if ((await personsGit(top, ["rev-parse", "--verify", "--quiet", `refs/heads/${branch}`])).code === 0)
    throw notPossible(
      `There is a branch ${branch} already: nothing was changed.`,
      "Choose another: --branch NAME",
    );
  const busy = UNFINISHED.find(([name]) => existsSync(join(checkout.gitFolder, name)));
  if (busy !== undefined)
    throw notPossible(
      `${busy[1]} is not finished in this checkout: nothing was changed.`,
      `Finish it first (\`git status\` says how), or give it up: ${busy[2]}`,
    );
  refuseLocked(checkout, branch);
  const from = await checkedOut(top);
  const files = await patchedFiles(top, prefix, patch);
  if ("refused" in files) throw doesNotFit(files.refused);
  const touched = await uncommitted(
    top,
    files.map(({ path }) => path),
  );
  if (touched !== "") throw doesNotFit(touched);
  const headCommit = await personsGit(top, ["rev-parse", "--verify", "--quiet", "HEAD"]);
  const head = headCommit.code === 0 ? String(headCommit.out).trim() : undefined;
  const { tree, entries } = await stage(checkout, files, head);
  if (head !== undefined && (await treeOf(top, head)) === tree)
    throw notPossible(
      "Git stores the same as before: the change is only in what its filters make of the files, such as line ends. Nothing was changed.",
    );
  const { target, applied } = await commit(checkout, change, { tree, head });
  const pathsThat = (removed: boolean) =>
    files.filter((file) => isRemoved(file) === removed).map(({ path }) => path);
  return {
    change: nameOf(checkout, change),
    branch,
    from,
    target,
    applied,
    entries,
    removed: pathsThat(true),
    written: pathsThat(false),
  };
}

const treeOf = async (top: string, commit: string) =>
  String(await mustGit(top, ["rev-parse", `${commit}^{tree}`])).trim();

/** The person's own identity and signature. What cannot be committed is staged on the branch instead. */
async function commit(
  { top, gitFolder }: Checkout,
  { message }: Change,
  { tree, head }: { readonly tree: string; readonly head: string | undefined },
): Promise<Pick<Plan, "target" | "applied">> {
  const signs = await personsGit(top, ["config", "--type=bool", "--get", "commit.gpgSign"]);
  const parent = head === undefined ? [] : ["-p", head];
  const signed = String(signs.out).trim() === "true" ? ["-S"] : [];
  const committed = await personsGit(top, ["commit-tree", tree, ...parent, ...signed, "-F", "-"], message);
  if (committed.code === 0) return { target: String(committed.out).trim(), applied: { committed: true } };
  const messageFile = join(gitFolder, "longhaul-message");
  writeFileSync(messageFile, message);
  return { target: head, applied: { committed: false, why: describeGit(committed), messageFile } };
}

const doesNotFit = (why: string) =>
  notPossible(
    `The change does not apply to what is checked out, or would touch uncommitted changes: nothing was changed.\n${why}`,
    "Check out the commit that the session started from, without uncommitted changes in these files.",
  );

/** @throws ClientError (impossible) if it is none, or cannot be written */
async function findCheckout(folder: string): Promise<Checkout> {
  const options = ["--show-toplevel", "--absolute-git-dir", "--git-common-dir", "--show-prefix"];
  const answer = await personsGit(folder, ["rev-parse", ...options]);
  if (answer.code !== 0)
    throw notPossible(
      `${folder} is not a Git checkout: ${describeGit(answer)}`,
      "Go to your checkout, or copy the files instead: longhaul pull ID DIR",
    );
  const [top = folder, gitFolder = folder, common = "", prefix = ""] = String(answer.out).split("\n");
  for (const target of [top, gitFolder])
    await access(target, constants.W_OK).catch((error: unknown) => {
      throw unwritable(
        target,
        error,
        "Go to a checkout of your own, or copy the files instead: longhaul pull ID DIR",
      );
    });
  return { top, gitFolder, commonFolder: resolve(folder, common), prefix };
}

/** What speaks against writing these files: uncommitted changes, or a file there that is not in Git. Empty if nothing does. */
async function uncommitted(top: string, paths: readonly string[]): Promise<string> {
  const args = [
    "status",
    "--porcelain",
    "-z",
    "--no-renames",
    "--untracked-files=no",
    "--ignore-submodules=all",
  ];
  const changed = new Set(namesIn(await mustGit(top, args)).map((line) => line.slice(3)));
  const tracked = new Set(namesIn(await mustGit(top, ["ls-files", "-z"])));
  const lines = paths.flatMap((path) => {
    if (changed.has(path)) return [`${path}: has uncommitted changes`];
    const stats = lookAt(onDisk(top, path));
    const isOwn = stats !== undefined && !stats.isDirectory() && !tracked.has(path);
    return isOwn ? [`${path}: already exists in working directory`] : [];
  });
  return lines.slice(0, MAX_NAMED).map(visible).join("\n");
}

const namesIn = (out: Buffer): string[] =>
  textOfBytes(out)
    .split("\0")
    .filter((name) => name !== "");

/** What Git's own tools show of a subject. */
const MAX_SUBJECT = 72;
/** A task may be a whole document. */
const MAX_BODY = 4_000;

/** The task as subject; all of it as body if that says more; and the session as trailer. */
export function commitMessage(task: string, sessionId: string): string {
  const text = task.trim();
  const subject = subjectOf(text);
  const says = text.replace(/\.$/, "") === subject ? [] : [shorten(text, MAX_BODY)];
  return `${[subject, ...says, `Longhaul-Session: ${sessionId}`].join("\n\n")}\n`;
}

function subjectOf(text: string): string {
  // The mark of a heading in Markdown is no word.
  const line = (text.split("\n", 1)[0] ?? "").replace(/^#+\s+/, "").trim();
  // Its first sentence; a shorter one may be an abbreviation.
  const [sentence = line] = /^.{12,}?[.!?](?=\s)/.exec(line) ?? [];
  const subject = (line.length <= MAX_SUBJECT ? line : sentence).replace(/[.:]$/, "");
  if (subject.length <= MAX_SUBJECT) return subject;
  const cut = cutChars(subject, MAX_SUBJECT - 1);
  // Between words, unless one is that long.
  const end = cut.lastIndexOf(" ");
  return `${end > MAX_SUBJECT / 2 ? cut.slice(0, end) : cut}…`;
}

/** Whether the change removes it. */
const isRemoved = ({ content }: PatchedFile): boolean => content === undefined;

const pathsOf = (files: readonly PatchedFile[]): Buffer => listed(files.map(({ path }) => path));

const FROM_INPUT = ["--pathspec-from-file=-", "--pathspec-file-nul"];

/** Settings that are about the person's own working tree and index. */
const NOT_THEIRS = ["core.sparseCheckout", "core.fsmonitor", "core.untrackedCache", "core.splitIndex"];

/**
 * Makes the files, and of them what Git stores, by Git's own filters; what is stored already is checked out through them.
 * @returns the whole tree, and the changed lines of the index
 */
async function stage(checkout: Checkout, files: readonly PatchedFile[], head: string | undefined) {
  const tree = preparedTree(checkout);
  makeGitFolder(checkout, head);
  const folderArgs = [`--git-dir=${preparedGit(checkout)}`, `--work-tree=${tree}`];
  const settings = NOT_THEIRS.flatMap((name) => ["-c", `${name}=false`]);
  const ask = (args: readonly string[], input?: string | Uint8Array) =>
    mustGit(tree, [...settings, ...folderArgs, ...args], input);
  await ask(["read-tree", head ?? "--empty"]);
  const written = files.filter(({ form, content }) => content !== undefined && form === "bytes");
  for (const { path, content } of written) {
    const file = onDisk(tree, path);
    mkdirSync(onDisk(tree, posix.dirname(path)), { recursive: true });
    if (content?.mode === "120000") symlinkSync(content.bytes, file);
    else writeFileSync(file, content?.bytes ?? "", { mode: content?.mode === "100755" ? 0o777 : 0o666 });
  }
  const removed = files.filter(isRemoved);
  const update = ["update-index", "-z"];
  if (removed.length > 0) await ask([...update, "--force-remove", "--stdin"], pathsOf(removed));
  if (written.length > 0)
    await ask(["--literal-pathspecs", "add", "--force", ...FROM_INPUT], pathsOf(written));
  await checkOutStored(ask, files);
  // Where the file system knows no such permission, only the index has it.
  for (const [mode, sign] of [
    ["100755", "+x"],
    ["100644", "-x"],
  ] as const) {
    const sameMode = written.filter(({ content }) => content?.mode === mode);
    if (sameMode.length > 0) await ask([...update, `--chmod=${sign}`, "--stdin"], pathsOf(sameMode));
  }
  const treeId = String(await ask(["write-tree"])).trim();
  return { tree: treeId, entries: entriesOf(await ask(["ls-files", "-s", "-z"]), files, treeId.length) };
}

type Ask = (args: readonly string[], input?: string | Uint8Array) => Promise<Buffer>;

async function checkOutStored(ask: Ask, files: readonly PatchedFile[]): Promise<void> {
  const stored = files.filter(({ form, content }) => content !== undefined && form === "stored");
  if (stored.length === 0) return;
  const entries: Buffer[] = [];
  for (const { path, content } of stored) {
    const blob = String(await ask(["hash-object", "-w", "--stdin"], content?.bytes ?? "")).trim();
    entries.push(Buffer.from(`${content?.mode} ${blob}\t`), bytesOfText(path), Buffer.alloc(1));
  }
  await ask(["update-index", "-z", "--index-info"], Buffer.concat(entries));
  await ask(["checkout-index", "-f", "-z", "--stdin"], pathsOf(stored));
}

/** As the folder of a linked working tree has it: everything but HEAD and the index is the repository's. */
function makeGitFolder(checkout: Checkout, head: string | undefined): void {
  const folder = preparedGit(checkout);
  mkdirSync(folder);
  mkdirSync(preparedTree(checkout));
  writeFileSync(join(folder, "commondir"), `${checkout.commonFolder}\n`);
  writeFileSync(join(folder, "HEAD"), `${head ?? "ref: refs/heads/none"}\n`);
  const worktreeConfig = join(checkout.gitFolder, "config.worktree");
  if (existsSync(worktreeConfig)) copyFileSync(worktreeConfig, join(folder, "config.worktree"));
}

/** The removed ones first: a file's path may become a folder's. */
function entriesOf(index: Buffer, files: readonly PatchedFile[], idLength: number): string[] {
  const names = new Map(files.map((file) => [bytesOfText(file.path).toString("latin1"), file]));
  const isOurs = (line: string) => names.has(line.slice(line.indexOf("\t") + 1));
  const removedNames = files.filter(isRemoved).map(({ path }) => bytesOfText(path).toString("latin1"));
  return [
    ...removedNames.map((name) => `0 ${"0".repeat(idLength)}\t${name}`),
    ...index.toString("latin1").split("\0").filter(isOurs),
  ];
}
