/** What a change makes of a checkout's files, and what Git stores of them, made beside the checkout by the person's own filters. */
import { copyFileSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join, posix } from "node:path";
import { bytesOfText } from "../../activities/store/path-text.ts";
import { preparedGit, preparedTree } from "./begun-apply.ts";
import { listed, onDisk, type PatchedFile } from "./patched-files.ts";
import { mustGit, type Checkout } from "./persons-git.ts";

/** Whether the change removes it. */
export const isRemoved = ({ content }: PatchedFile): boolean => content === undefined;

const pathsOf = (files: readonly PatchedFile[]): Buffer => listed(files.map(({ path }) => path));

const FROM_INPUT = ["--pathspec-from-file=-", "--pathspec-file-nul"];

/** Settings that are about the person's own working tree and index. */
const NOT_THEIRS = ["core.sparseCheckout", "core.fsmonitor", "core.untrackedCache", "core.splitIndex"];

/**
 * Makes the files, and of them what Git stores, by Git's own filters; what is stored already is checked out through them.
 * @returns the whole tree, and the changed lines of the index
 */
export async function stage(checkout: Checkout, files: readonly PatchedFile[], head: string | undefined) {
  const tree = preparedTree(checkout);
  makeGitFolder(checkout, head);
  const given = [`--git-dir=${preparedGit(checkout)}`, `--work-tree=${tree}`];
  const settings = NOT_THEIRS.flatMap((name) => ["-c", `${name}=false`]);
  const ask = (args: readonly string[], input?: string | Uint8Array) =>
    mustGit(tree, [...settings, ...given, ...args], input);
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
    const those = written.filter(({ content }) => content?.mode === mode);
    if (those.length > 0) await ask([...update, `--chmod=${sign}`, "--stdin"], pathsOf(those));
  }
  const made = String(await ask(["write-tree"])).trim();
  return { tree: made, entries: entriesOf(await ask(["ls-files", "-s", "-z"]), files, made.length) };
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
  const own = join(checkout.gitFolder, "config.worktree");
  if (existsSync(own)) copyFileSync(own, join(folder, "config.worktree"));
}

/** The removed ones first: a file's path may become a folder's. */
function entriesOf(index: Buffer, files: readonly PatchedFile[], idLength: number): string[] {
  const names = new Map(files.map((file) => [bytesOfText(file.path).toString("latin1"), file]));
  const isOurs = (line: string) => names.has(line.slice(line.indexOf("\t") + 1));
  const gone = files.filter(isRemoved).map(({ path }) => bytesOfText(path).toString("latin1"));
  return [
    ...gone.map((name) => `0 ${"0".repeat(idLength)}\t${name}`),
    ...index.toString("latin1").split("\0").filter(isOurs),
  ];
}
