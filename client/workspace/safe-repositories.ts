/**
 * Repositories inside a workspace as a clone would have them: history, branches and index, a safe configuration, no
 * hooks. A repository is more than data: `git status`, which a prompt or an editor runs unasked, starts the programs that
 * its configuration names. So nothing in it crosses between a sandbox and a person's disk but what is known to be data.
 * Pure.
 */
import type { WorkspaceFile } from "../../activities/store/workspace-pack.ts";
import { safeGitConfig } from "./git-config.ts";

export interface SafeFiles {
  readonly files: readonly WorkspaceFile[];
  /** Omissions, a name each: a path, or `core.fsmonitor in .git/config`. Sample hooks are not listed. */
  readonly leftOut: readonly string[];
}

export interface SafeOptions {
  /**
   * Whether folders that are repositories without being called `.git` stay so. On a person's disk they must not: Git
   * takes any folder with a `HEAD` as one, and reads the configuration next to it.
   */
  readonly bareRepositories: boolean;
}

/** Files that Git recreates by itself, and the sample hooks that it puts into every repository. */
const NOT_WORTH_A_WORD = /\.git\/(.*\/)?(hooks\/[^/]+\.sample|FETCH_HEAD|AUTO_MERGE|gc\.log|[^/]+\.lock)$/;

type Verdict = "data" | "config" | "out";

/** A larger file is not a configuration or a `HEAD`. */
const MAX_TEXT_BYTES = 1024 * 1024;

export function withSafeRepositories(all: readonly WorkspaceFile[], options: SafeOptions): SafeFiles {
  const byPath = new Map(all.map((file) => [file.path, file]));
  const leftOut = new Set<string>();
  const files: WorkspaceFile[] = [];
  for (const file of all) {
    const verdict = judge(file, byPath, options);
    if (verdict === "data") files.push(inRepository(file.path) ? asData(file) : file);
    else if (verdict === "config" && file.kind === "file") {
      const { text, leftOut: settings } = safeGitConfig(textOf(file.bytes));
      files.push({ ...file, mode: 0o644, bytes: Buffer.from(text) });
      for (const name of settings) leftOut.add(`${name} in ${file.path}`);
    } else if (file.kind !== "folder" && !NOT_WORTH_A_WORD.test(file.path)) leftOut.add(file.path);
  }
  return { files, leftOut: [...leftOut] };
}

function judge(
  file: WorkspaceFile,
  byPath: ReadonlyMap<string, WorkspaceFile>,
  { bareRepositories }: SafeOptions,
): Verdict {
  const parts = file.path.split("/");
  const at = parts.findIndex(isGitName);
  if (at < 0) return judgeOutside(file, parts, byPath, bareRepositories);
  // Another spelling is the same folder on some file systems.
  if (parts[at] !== ".git" || file.kind === "link") return "out";
  const inside = parts.slice(at + 1);
  if (inside.length === 0) return file.kind === "folder" || leadsToModule(file, byPath) ? "data" : "out";
  if (inside.some(isGitName)) return "out";
  const root = parts.slice(0, at + 1).join("/");
  return judgeInside(file, inside, (module) => byPath.has(`${root}/${module}/HEAD`));
}

const DATA_FILES =
  /^(ORIG_HEAD|MERGE_HEAD|CHERRY_PICK_HEAD|REVERT_HEAD|MERGE_MSG|MERGE_MODE|SQUASH_MSG|COMMIT_EDITMSG|index|sharedindex\.[0-9a-f]+|packed-refs|shallow|description|info\/(exclude|attributes|refs|sparse-checkout)|objects\/[0-9a-f]{2}\/[0-9a-f]{38,62}|objects\/pack\/(pack-[0-9a-f]+\.\w+|multi-pack-index[\w.-]*)|objects\/info\/(packs|commit-graph|commit-graphs\/[\w.-]+)|reftable\/[\w.-]+|lfs\/objects\/[0-9a-f]{2}\/[0-9a-f]{2}\/[0-9a-f]{64})$/;
const DATA_FOLDERS =
  /^(refs(\/.*)?|logs(\/refs(\/.*)?)?|info|objects(\/([0-9a-f]{2}|pack|info|info\/commit-graphs))?|reftable|modules(\/.*)?|lfs(\/objects(\/[0-9a-f]{2}){0,2})?)$/;

/** @param hasHead whether a folder of the repository is one itself, such as `modules/lib` */
function judgeInside(
  file: WorkspaceFile,
  parts: readonly string[],
  hasHead: (folder: string) => boolean,
): Verdict {
  const path = parts.join("/");
  if (file.kind === "link") return "out";
  if (parts[0] === "modules" && parts.length > 1) {
    const depth = moduleDepth(parts, hasHead);
    const below = (folder: string) => hasHead(`${parts.slice(0, depth).join("/")}/${folder}`);
    if (depth > 0) return depth === parts.length ? "data" : judgeInside(file, parts.slice(depth), below);
    return file.kind === "folder" ? "data" : "out";
  }
  if (file.kind === "folder") return DATA_FOLDERS.test(path) ? "data" : "out";
  if (path === "config") return file.bytes.byteLength > MAX_TEXT_BYTES ? "out" : "config";
  if (path === "HEAD") return isHead(file.bytes) ? "data" : "out";
  // The agent chooses the names of references and logs, even `config` and `hooks/x`, so the content decides.
  if (isStrayHead(parts)) return "out";
  if (parts[0] === "refs") return isHead(file.bytes) ? "data" : "out";
  if (parts[0] === "logs") return isLog(file.bytes) && /^logs\/(HEAD$|refs\/)/.test(path) ? "data" : "out";
  return DATA_FILES.test(path) ? "data" : "out";
}

/** How many of the parts name a submodule's own repository; 0 if none of its folders has a `HEAD`. */
function moduleDepth(parts: readonly string[], hasHead: (folder: string) => boolean): number {
  for (let depth = 2; depth <= parts.length; depth += 1)
    if (hasHead(parts.slice(0, depth).join("/"))) return depth;
  return 0;
}

/** `HEAD` below `refs/` and their logs is known only as a remote's. */
const isStrayHead = (parts: readonly string[]) =>
  parts.length > 2 &&
  folded(parts.at(-1) ?? "") === "head" &&
  !/^(logs\/)?refs\/remotes\/[^/]+\/HEAD$/.test(parts.join("/"));

/** A `.git` file as submodules have it: it may name nothing but a submodule's repository that goes along. */
function leadsToModule(file: WorkspaceFile, byPath: ReadonlyMap<string, WorkspaceFile>): boolean {
  if (file.kind !== "file" || file.bytes.byteLength > 4_096) return false;
  const target = /^gitdir: ([^/\\\p{Cc}][^\\\p{Cc}]*)\n?$/u.exec(textOf(file.bytes))?.[1];
  if (target === undefined) return false;
  const parts = file.path.split("/").slice(0, -1);
  for (const part of target.split("/")) {
    if (part === "..") {
      if (parts.pop() === undefined) return false;
    } else if (part !== "." && part !== "") parts.push(part);
  }
  const at = parts.indexOf(".git");
  const head = byPath.get(`${parts.join("/")}/HEAD`);
  return at >= 0 && parts[at + 1] === "modules" && parts.length > at + 2 && head?.kind === "file";
}

/** Other systems' repositories, whose configuration is as dangerous. */
const OTHER_CONFIGS =
  /(^|\/)(\.hg\/(hgrc[^/]*|sharedpath)|\.jj\/(workspace-config\.toml|repo|repo\/[^/]*config[^/]*))$/;

function judgeOutside(
  file: WorkspaceFile,
  parts: readonly string[],
  byPath: ReadonlyMap<string, WorkspaceFile>,
  bareRepositories: boolean,
): Verdict {
  if (file.kind === "folder") return "data";
  const name = folded(parts.at(-1) ?? "");
  if (name === "head" && !bareRepositories)
    return file.kind === "link" || mayBeHead(file.bytes) ? "out" : "data";
  if (name === "config" && file.kind === "file" && file.bytes.byteLength <= MAX_TEXT_BYTES) {
    const beside = (other: string) => byPath.has([...parts.slice(0, -1), other].join("/"));
    return beside("HEAD") && beside("objects") && beside("refs") ? "config" : "data";
  }
  return OTHER_CONFIGS.test(parts.slice(-3).map(folded).join("/")) ? "out" : "data";
}

/** Whether a name leads to `.git` on any file system: Linux', macOS' and Windows'. Source: Git's verify_path. */
export function isGitName(name: string): boolean {
  return name.split("\\").some((part) => /^(\.git|git~\d+)$/.test(folded(part)));
}

/** Case, ignorable characters, trailing dots and streams, which some file systems ignore. */
function folded(name: string): string {
  // A fast path for most names, since every part of every path is checked.
  if (/^[\w-]*$/.test(name)) return name.toLowerCase();
  return name
    .normalize("NFKC")
    .replace(/[\p{Cf}\p{Cc}]/gu, "")
    .toLowerCase()
    .replace(/:.*$/, "")
    .replace(/[. ]+$/, "");
}

/** The beginning of a `HEAD`, by which Git decides whether a folder is a repository. */
export const mayBeHead = (bytes: Uint8Array) =>
  /^\s*(ref:|[0-9a-f]{40})/i.test(textOf(bytes.subarray(0, 256)));

/** The whole content of a `HEAD` or of a reference. */
function isHead(bytes: Uint8Array): boolean {
  return (
    bytes.byteLength <= 4_096 &&
    /^(ref:\s*refs\/[^\p{Cc}]+|[0-9a-f]{40}([0-9a-f]{24})?)\s*$/u.test(textOf(bytes))
  );
}

/** Lines of two hashes each. Its first line decides: as a configuration or a program it would be refused there. */
function isLog(bytes: Uint8Array): boolean {
  return bytes.byteLength === 0 || /^[0-9a-f]{40,64} [0-9a-f]{40,64} /.test(textOf(bytes.subarray(0, 200)));
}

const inRepository = (path: string) => path.split("/").includes(".git");

/** Nothing in a repository needs to be executable; older versions of Git logged the address of a clone. */
function asData(file: WorkspaceFile): WorkspaceFile {
  if (file.kind !== "file") return file;
  const data = { ...file, mode: file.mode & 0o666 };
  if (!file.path.includes("/logs/")) return data;
  const text = Buffer.from(file.bytes).toString("latin1");
  return { ...data, bytes: Buffer.from(text.replace(/:\/\/[^/\s@]{1,500}@/g, "://"), "latin1") };
}

const textOf = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
