/**
 * Which files of a folder, or of a session's saved files, git leaves out: git itself is asked, in either direction, so that its
 * case, its nesting and every file of rules that it knows count. What git tracks is never left out.
 */
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, posix, relative } from "node:path";
import { bytesOfText, textOfBytes } from "../../activities/store/path-text.ts";
import type { WorkspaceFile } from "../../activities/store/workspace-pack.ts";
import { isGitName } from "./safe-repositories.ts";
import { spawnSync } from "node:child_process";
import { missing } from "../console/errors.ts";
import { childEnvironment } from "../setup/processes.ts";

/** Rebuilt in the sandbox, or our own data: out even where no rule names them, unless git tracks them. */
const ALWAYS_OUT = ["node_modules", ".longhaul"];

export const isAlwaysOut = (path: string): boolean => ALWAYS_OUT.includes(posix.basename(path));

/** What git says of a folder; the paths are relative to it. */
export interface FolderRules {
  /** What git tracks, and the folders around it. */
  readonly tracked: ReadonlySet<string>;
  /**
   * What rules leave out: files and links, and folders with all that is in them but for what git tracks. A folder that has nothing
   * but ignored files counts as a whole.
   */
  readonly ignored: ReadonlySet<string>;
}

/**
 * The rules of the repository that the folder is in count, also those above it; a folder that is in none, or that its repository
 * ignores, has its own `.gitignore` files.
 * @param leaveOut further rules, in the form of a line of `.gitignore`
 * @throws ClientError (missing) without Git; LocalGitFailed
 */
export function rulesOfFolder(folder: string, leaveOut: readonly string[] = []): FolderRules {
  if (repositoryTop(folder) !== undefined) return read(folder, [], leaveOut);
  const repository = emptyRepository();
  try {
    const folderArgs = [...NO_OTHER_RULES, `--git-dir=${join(repository, ".git")}`, `--work-tree=${folder}`];
    return read(folder, folderArgs, leaveOut);
  } finally {
    rmSync(repository, { recursive: true, force: true });
  }
}

/**
 * The top of the repository that the folder is in, as a real path; undefined if it is in none, or that ignores it. One above the folder
 * counts if git accepts its owner: anybody may put one into a shared folder such as /tmp.
 */
export function repositoryTop(folder: string): string | undefined {
  const options = { cwd: folder, mayFail: true, anyOwner: existsSync(join(folder, ".git")) };
  const top = textOfBytes(safeGit(["rev-parse", "--show-toplevel"], options)).replace(/\n$/, "");
  // A repository's own settings may name another place.
  if (top === "" || relative(top, realpathSync(folder)).startsWith("..")) return undefined;
  return safeGit(["check-ignore", "."], options).length === 0 ? top : undefined;
}

function read(folder: string, commandArguments: readonly string[], leaveOut: readonly string[]): FolderRules {
  const ask = (...args: string[]) =>
    names(safeGit([...commandArguments, "ls-files", "-z", ...args], { cwd: folder, anyOwner: true }));
  const tracked = new Set<string>();
  for (const name of ask())
    for (let path = name; path !== "." && !tracked.has(path); path = posix.dirname(path)) tracked.add(path);
  const rules = ["--exclude-standard", ...leaveOut.map((pattern) => `--exclude=${pattern}`)];
  const ignored = ask("--others", "--ignored", "--directory", ...rules);
  return { tracked, ignored: new Set(ignored.map((name) => name.replace(/\/$/, ""))) };
}

/**
 * The paths of saved files that a new file would be ignored at, by the files of rules among them; what their index tracks is not
 * among them. The rules are written to a folder of their own, where git reads nothing else.
 * @throws ClientError (missing) without Git; LocalGitFailed
 */
export function ignoredAmong(files: readonly WorkspaceFile[]): ReadonlySet<string> {
  const roots = files
    .filter(({ path }) => posix.basename(path) === ".git")
    .map(({ path }) => posix.dirname(path));
  const paths = new Set<string>();
  const groups = Map.groupBy(files, ({ path }) => innermost(roots, path));
  for (const [root, groupFiles] of groups) {
    const below = (path: string) => (root === "." ? path : path.slice(root.length + 1));
    const relative = groupFiles
      .map((file) => ({ ...file, path: below(file.path) }))
      .filter(({ path }) => path !== "");
    for (const path of ignoredIn(relative)) paths.add(root === "." ? path : `${root}/${path}`);
  }
  return paths;
}

/** The innermost repository that a path is in; `.` if there is none. */
function innermost(roots: readonly string[], path: string): string {
  let best = ".";
  for (const root of roots)
    if (root !== "." && path.startsWith(`${root}/`) && root.length >= best.length) best = root;
  return best;
}

function ignoredIn(files: readonly WorkspaceFile[]): string[] {
  const candidates = files.filter(({ kind, path }) => kind !== "folder" && !path.split("/").some(isGitName));
  const rules = files.filter(
    ({ kind, path }) =>
      kind === "file" && (posix.basename(path) === ".gitignore" || path === ".git/info/exclude"),
  );
  const index = files.find(({ kind, path }) => kind === "file" && path === ".git/index");
  const out = new Set(
    candidates.filter(({ path }) => path.split("/").some(isAlwaysOut)).map(({ path }) => path),
  );
  if (rules.length === 0 && (out.size === 0 || index === undefined)) return [...out];
  const repository = emptyRepository();
  try {
    for (const file of index === undefined ? rules : [...rules, index]) writeRules(repository, file);
    const input = Buffer.concat(candidates.flatMap(({ path }) => [bytesOfText(path), Buffer.alloc(1)]));
    const check = [...NO_OTHER_RULES, "check-ignore", "--no-index", "-z", "--stdin"];
    for (const name of names(safeGit(check, { cwd: repository, input, mayFail: true }))) out.add(name);
    // An index that git cannot read tracks nothing.
    for (const name of names(safeGit(["ls-files", "-z"], { cwd: repository, mayFail: true })))
      out.delete(name);
    return [...out];
  } finally {
    rmSync(repository, { recursive: true, force: true });
  }
}

function writeRules(repository: string, file: WorkspaceFile): void {
  const parts = file.path.split("/");
  if (file.kind !== "file" || parts.includes("..") || parts.slice(1).some(isGitName)) return;
  const target = join(repository, ...parts);
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(target, file.bytes);
}

/** Neither the person's own rules nor a case that this machine's disk does not know. */
const NO_OTHER_RULES = ["-c", "core.excludesFile=/dev/null", "-c", "core.ignoreCase=false"];

function emptyRepository(): string {
  const folder = mkdtempSync(join(tmpdir(), "longhaul-rules-"));
  safeGit(["init", "--quiet", "--template=", folder]);
  return folder;
}

const names = (out: Buffer): string[] =>
  textOfBytes(out)
    .split("\0")
    .filter((name) => name !== "");

/** Of a repository with thousands of commits a few seconds; more means that something waits. */
const GIT_TIMEOUT_MS = 120_000;
/** `protocol.allow`: objects that are missing are not fetched, for which a repository may name a program. */
const NO_PROGRAM = [
  "core.fsmonitor=false",
  "core.hooksPath=/dev/null",
  "protocol.allow=never",
  "safe.bareRepository=all",
];
const MAX_OUTPUT_BYTES = 128 * 1024 * 1024;

export interface SafeGitOptions {
  readonly cwd?: string;
  readonly input?: Buffer;
  /** Its output counts however it ends. */
  readonly mayFail?: boolean;
  /** Also if another user has the repository, as in a container: only for one that the person named. */
  readonly anyOwner?: boolean;
}

/**
 * Git without the programs that a repository's configuration names: for folders that somebody else may have written.
 * @returns what it printed
 * @throws ClientError (missing) without Git; LocalGitFailed with its words
 */
export function safeGit(args: readonly string[], options: SafeGitOptions = {}): Buffer {
  const { cwd, input = Buffer.alloc(0), mayFail = false, anyOwner = false } = options;
  const settings = [...NO_PROGRAM, ...(anyOwner ? ["safe.directory=*"] : [])];
  const ended = spawnSync("git", [...settings.flatMap((setting) => ["-c", setting]), ...args], {
    cwd,
    input,
    // Without GIT_DIR and the like: a hook's own place must not become that of the folder that is asked about.
    env: childEnvironment("service"),
    timeout: GIT_TIMEOUT_MS,
    maxBuffer: MAX_OUTPUT_BYTES,
  });
  if ((ended.error as NodeJS.ErrnoException | undefined)?.code === "ENOENT")
    throw missing("Git is not installed here.", "Install git: it says which files of a folder go along.");
  if (ended.error !== undefined) throw ended.error;
  if (ended.status !== 0 && !mayFail) throw new LocalGitFailed(ended.stderr.toString().trim());
  return ended.stdout;
}

export class LocalGitFailed extends Error {}
