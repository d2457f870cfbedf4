/**
 * Repositories inside a workspace as a clone would have them: history, branches and index, a safe configuration, no
 * hooks. A repository is more than data: `git status`, which a prompt or an editor runs unasked, starts programs that the
 * configuration names. So only files that are known to be data are copied between a sandbox and a person's disk.
 */
import type { WorkspaceFile } from "../../activities/store/workspace-pack.ts";

export interface SafeFiles {
  readonly files: readonly WorkspaceFile[];
  /** Names of omissions: a path, or a setting such as `core.fsmonitor in .git/config`. Sample hooks are not listed. */
  readonly leftOut: readonly string[];
}

export interface SafeOptions {
  /**
   * Whether repositories in folders that are not called `.git` are kept. On a person's disk they must not be: Git treats
   * any folder with a `HEAD` as a repository, and reads the configuration next to it.
   */
  readonly bareRepositories: boolean;
}

/** Omissions that are not listed: files that Git recreates, and the sample hooks that it adds to every repository. */
const NOT_WORTH_A_WORD =
  /\.git\/(.*\/)?(hooks\/[^/]+\.sample|FETCH_HEAD|AUTO_MERGE|longhaul-not-restored|gc\.log|[^/]+\.lock)$/;

type Verdict = "data" | "config" | "out";

/** Larger files are not treated as a configuration or a `HEAD`. */
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
  // On some file systems, another spelling of `.git` is the same folder.
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

/** @param hasHead whether a folder in the repository is a repository itself, such as `modules/lib` */
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

/** The number of leading parts that name a submodule's repository; 0 if none of the folders has a `HEAD`. */
function moduleDepth(parts: readonly string[], hasHead: (folder: string) => boolean): number {
  for (let depth = 2; depth <= parts.length; depth += 1)
    if (hasHead(parts.slice(0, depth).join("/"))) return depth;
  return 0;
}

/** Below `refs/` and its logs, only a remote has a `HEAD`. */
const isStrayHead = (parts: readonly string[]) =>
  parts.length > 2 &&
  folded(parts.at(-1) ?? "") === "head" &&
  !/^(logs\/)?refs\/remotes\/[^/]+\/HEAD$/.test(parts.join("/"));

/** Whether a `.git` file is that of a submodule: it must name a submodule's repository that is copied too. */
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

/** Configuration files of other version control systems, which are just as dangerous. */
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

/** Whether a name refers to `.git` on a file system of Linux, macOS or Windows. Source: Git's verify_path. */
export function isGitName(name: string): boolean {
  return name.split("\\").some((part) => /^(\.git|git~\d+)$/.test(folded(part)));
}

/** Removes what some file systems ignore: case, ignorable characters, trailing dots and streams. */
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

/** Whether the file begins like a `HEAD`, by which Git recognises a repository. */
export const mayBeHead = (bytes: Uint8Array) =>
  /^\s*(ref:|[0-9a-f]{40})/i.test(textOf(bytes.subarray(0, 256)));

/** Whether the whole content is that of a `HEAD` or a reference. */
function isHead(bytes: Uint8Array): boolean {
  return (
    bytes.byteLength <= 4_096 &&
    /^(ref:\s*refs\/[^\p{Cc}]+|[0-9a-f]{40}([0-9a-f]{24})?)\s*$/u.test(textOf(bytes))
  );
}

/** A log's lines begin with two hashes. The first line suffices: no configuration or program can begin like that. */
function isLog(bytes: Uint8Array): boolean {
  return bytes.byteLength === 0 || /^[0-9a-f]{40,64} [0-9a-f]{40,64} /.test(textOf(bytes.subarray(0, 200)));
}

const inRepository = (path: string) => path.split("/").includes(".git");

/** Removes execute permissions, which no repository file needs, and addresses of clones, which older Git logged. */
function asData(file: WorkspaceFile): WorkspaceFile {
  if (file.kind !== "file") return file;
  const data = { ...file, mode: file.mode & 0o666 };
  if (!file.path.includes("/logs/")) return data;
  const text = Buffer.from(file.bytes).toString("latin1");
  return { ...data, bytes: Buffer.from(text.replace(/:\/\/[^/\s@]{1,500}@/g, "://"), "latin1") };
}

const textOf = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

export interface SafeConfig {
  /** Text for a new file; empty if no setting remains. */
  readonly text: string;
  /** Names of omitted settings, such as `core.fsmonitor`, and of changed ones. */
  readonly leftOut: readonly string[];
}

interface Setting {
  readonly section: string;
  readonly subsection: string | undefined;
  readonly key: string;
  readonly value: string;
}

/** Returns the value to write, or undefined if the setting is left out. */
type Rule = (value: string) => string | undefined;

const matching =
  (pattern: RegExp): Rule =>
  (value) =>
    pattern.test(value) ? value : undefined;
const flag = matching(/^(true|false|yes|no|on|off|0|1|)$/i);
const onOneLine = matching(/^[^\p{Cc}\p{Cf}]{1,500}$/u);
const remoteName = matching(/^(\.|[\p{L}\p{N}_][\p{L}\p{N}_./@+-]{0,200})$/u);

/** By section and key, as `section.key`; for sections with names as `section.*.key`. */
const RULES: Readonly<Record<string, Rule>> = {
  "core.repositoryformatversion": matching(/^[01]$/),
  "core.filemode": flag,
  "core.bare": flag,
  "core.ignorecase": flag,
  "core.symlinks": flag,
  "core.precomposeunicode": flag,
  "core.logallrefupdates": matching(/^(true|false|always)$/i),
  "core.autocrlf": matching(/^(true|false|input)$/i),
  "core.eol": matching(/^(lf|crlf|native)$/i),
  "extensions.objectformat": matching(/^sha(1|256)$/),
  "extensions.refstorage": matching(/^(files|reftable)$/),
  // Set in each checkout: pack files can be saved, and an old commit's LFS file stays a pointer.
  "pack.packsizelimit": matching(/^\d{1,9}[kmg]?$/i),
  "lfs.skipdownloaderrors": flag,
  "user.name": onOneLine,
  "user.email": onOneLine,
  "remote.*.url": safeRemoteUrl,
  "remote.*.pushurl": safeRemoteUrl,
  "remote.*.fetch": matching(/^[+^]?refs\/[\p{L}\p{N}_./*@+-]+(:refs\/[\p{L}\p{N}_./*@+-]+)?$/u),
  "branch.*.remote": remoteName,
  "branch.*.pushremote": remoteName,
  "branch.*.merge": matching(/^refs\/[\p{L}\p{N}_./@+#-]{1,250}$/u),
  "branch.*.rebase": flag,
  "submodule.*.url": safeRemoteUrl,
  "submodule.*.active": flag,
};

const NAMED = ["remote", "branch", "submodule"];

/**
 * The part of a configuration file's text that is safe on another machine: settings that can neither run a program nor hold a
 * credential. It is an allow-list, so settings of future Git versions are left out too.
 */
export function safeGitConfig(text: string): SafeConfig {
  const safeSettings: Setting[] = [];
  const leftOut = new Set<string>();
  for (const setting of parse(text)) {
    const rule = ruleOf(setting);
    const value = rule?.(setting.value);
    if (value === undefined || value !== setting.value) leftOut.add(nameOf(setting));
    if (value !== undefined) safeSettings.push({ ...setting, value });
  }
  return { text: write(safeSettings), leftOut: [...leftOut] };
}

function ruleOf({ section, subsection, key }: Setting): Rule | undefined {
  if (subsection === undefined) return RULES[`${section}.${key}`];
  const isPlain = /^[^\p{Cc}\p{Cf}"\\]{1,250}$/u.test(subsection) && !subsection.startsWith("-");
  return isPlain && NAMED.includes(section) ? RULES[`${section}.*.${key}`] : undefined;
}

function nameOf({ section, subsection, key }: Setting): string {
  return [section, ...(subsection === undefined ? [] : [safeRemoteUrl(subsection) ?? "…"]), key].join(".");
}

/** For other schemes, such as `ext::` or an unknown one, Git runs a program of that name. */
const SCHEMES = ["https:", "http:", "ssh:", "git:", "git+ssh:", "ssh+git:", "ftp:", "ftps:", "file:"];

/** The address without credentials; undefined if the address could make Git run a program. */
export function safeRemoteUrl(value: string): string | undefined {
  if (value === "" || value.startsWith("-") || /[\p{Cc}\p{Cf}]/u.test(value) || value.length > 2_000) return;
  if (/^[\w+.-]+::/.test(value)) return;
  if (!/^[\w+.-]+:\/\//.test(value)) {
    // A path, or `user@host:path`, which has no place for a password.
    const host = /^(?:[^@/:]*@)?([^/:]*):/.exec(value)?.[1];
    return host?.startsWith("-") === true ? undefined : value;
  }
  try {
    const url = new URL(value);
    if (!SCHEMES.includes(url.protocol) || url.hostname.startsWith("-")) return;
    const isSsh = url.protocol.includes("ssh");
    if (url.password === "" && url.search === "" && url.hash === "" && (isSsh || url.username === ""))
      return value;
    url.password = "";
    // SSH needs the user name, which is not a secret. With HTTP, the name or the query may be a token.
    if (!isSsh) url.username = "";
    url.search = "";
    url.hash = "";
    return url.href;
  } catch {
    return;
  }
}

/** Parses settings in Git's format. Unreadable lines are skipped: only known settings are written again. */
function* parse(text: string): Generator<Setting> {
  let section = "";
  let subsection: string | undefined;
  for (const line of logicalLines(text)) {
    let rest = line.trim();
    const head = /^\[\s*([\w.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]/.exec(rest);
    if (head !== null) {
      const [whole, name = "", quoted] = head;
      const dot = name.indexOf(".");
      section = (dot < 0 ? name : name.slice(0, dot)).toLowerCase();
      subsection = quoted?.replace(/\\(.)/g, "$1") ?? (dot < 0 ? undefined : name.slice(dot + 1));
      rest = rest.slice(whole.length).trim();
    }
    const assignment = /^([A-Za-z][A-Za-z0-9-]*)\s*(?:=([^]*))?$/.exec(withoutComment(rest));
    if (assignment === null || section === "") continue;
    const [, key = "", value] = assignment;
    yield {
      section,
      subsection,
      key: key.toLowerCase(),
      value: value === undefined ? "true" : unquoted(value),
    };
  }
}

/** A backslash at the end of a line continues it. */
function logicalLines(text: string): string[] {
  return text
    .replace(/^\uFEFF/, "")
    .replaceAll("\r\n", "\n")
    .replace(/(?<!\\)((?:\\\\)*)\\\n/g, "$1")
    .split("\n");
}

function withoutComment(line: string): string {
  let quoted = false;
  for (let at = 0; at < line.length; at += 1) {
    if (line[at] === "\\") at += 1;
    else if (line[at] === '"') quoted = !quoted;
    else if (!quoted && (line[at] === "#" || line[at] === ";")) return line.slice(0, at);
  }
  return line;
}

const ESCAPES: Readonly<Record<string, string>> = { n: "\n", t: "\t", b: "\b" };

function unquoted(value: string): string {
  return value
    .trim()
    .replace(/\\(.)|"/g, (_, sign?: string) => (sign === undefined ? "" : (ESCAPES[sign] ?? sign)));
}

function write(settings: readonly Setting[]): string {
  const sections = Map.groupBy(settings, ({ section, subsection }) =>
    subsection === undefined ? `[${section}]` : `[${section} "${subsection}"]`,
  );
  const lines = [...sections].flatMap(([head, entries]) => [
    head,
    ...entries.map(({ key, value }) => `\t${key} = "${value.replace(/["\\]/g, "\\$&")}"`),
  ]);
  return lines.map((line) => `${line}\n`).join("");
}
