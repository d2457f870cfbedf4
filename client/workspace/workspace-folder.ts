/**
 * Reads a folder of the person's machine as the session's initial workspace: its files, those that look as if they held
 * credentials, and the instructions of the repository around it.
 */
import { lstatSync, readdirSync, readFileSync, readlinkSync, realpathSync } from "node:fs";
import { lstat, readdir } from "node:fs/promises";
import { join, posix, resolve, dirname, relative } from "node:path";
import { cutChars } from "../../activities/text/cut.ts";
import { bytesOfText, textOfBytes } from "../../activities/store/path-text.ts";
import type { WorkspaceFile } from "../../activities/store/workspace-pack.ts";
import { usageError } from "../console/errors.ts";
import { listNames, present } from "../console/format.ts";
import { bytes } from "../../activities/text/format.ts";
import { type FolderRules, isAlwaysOut, rulesOfFolder, LocalGitFailed, repositoryTop } from "./git-rules.ts";
import { withSafeRepositories } from "./safe-repositories.ts";
import {
  repositoryEntries,
  repositoryFolders,
  withWholeRepositories,
  type RepositoryFolders,
} from "./whole-repositories.ts";
import type { RunConfig } from "../../activities/config/agent-config.ts";
import { projectFiles } from "../../activities/config/system-prompt.ts";

/** Source: MAX_PACK_BYTES of the checkpoints. */
const MAX_WORKSPACE_BYTES = 256 * 1024 * 1024;
const MAX_FILES = 200_000;

export interface FolderContent {
  readonly files: readonly WorkspaceFile[];
  readonly bytes: number;
  /** Notes for the person, one per line. */
  readonly notes: readonly string[];
}

/**
 * The folder's files as Git reads them (`git-rules.ts`), without `node_modules` and `.longhaul`; what Git tracks goes along in any
 * case. Repositories are included as a clone would have them: their configuration may hold tokens in addresses and headers.
 * @param leaveOut what else stays here, in the form of lines of `.gitignore`
 * @throws ClientError (usage) if it is not a folder, cannot be read or is larger than 256 MB; (missing) without Git
 */
export async function readFolder(folder: string, leaveOut: readonly string[] = []): Promise<FolderContent> {
  const root = resolve(folder);
  const stat = await lstat(root).catch(() => undefined);
  if (stat === undefined || !(await isFolder(root))) {
    throw usageError(`--workspace: ${folder} is not a folder.`);
  }
  const content: Content = { root, leaveOut, files: [], bytes: 0, elsewhere: new Map(), leftOut: [] };
  try {
    const rules = { below: "", only: "all", ...rulesOfFolder(root, leaveOut) } as const;
    addFolder(content, { path: "", disk: Buffer.from(root) }, rules);
  } catch (error) {
    if (error instanceof LocalGitFailed)
      throw usageError(
        `--workspace: Git cannot read a repository in ${folder}: ${cutChars(error.message, 500)}`,
        "Repair it (`git fsck` says where), or move its .git away: then the files go along without their history.",
      );
    if ((error as NodeJS.ErrnoException).code === undefined) throw error;
    throw usageError(
      `--workspace: ${(error as Error).message}`,
      "Make it readable, or leave it out with a line in .gitignore.",
    );
  }
  const whole = withWholeRepositories(content.files, (repository) => placeOf(content, repository));
  const safe = withSafeRepositories(whole.files, { bareRepositories: true });
  return {
    files: safe.files,
    bytes: content.bytes,
    notes: [
      ...whole.notes,
      ...[...content.elsewhere].map(
        ([repository, { common }]) => `The history in ${repository} is that of ${common}, and goes along.`,
      ),
      ...notesOf(safe.files, safe.leftOut),
      ...leftHere(content),
    ],
  };
}

function notesOf(files: readonly WorkspaceFile[], leftOut: readonly string[]): string[] {
  // Such as a linked worktree of a repository in the same folder.
  const [parts, alone] = [leftOut.filter((path) => !isDotGit(path)), leftOut.filter(isDotGit)];
  const secret = credentialFiles(files);
  return present(
    parts.length > 0 &&
      `The repository goes into the sandbox as a clone would have it, without ${listNames(parts)}.`,
    alone.length > 0 &&
      `${listNames(alone)}: leads to no repository that could go along, so the files there go into the sandbox without their history.`,
    secret.length > 0 &&
      `Warning: ${listNames(secret)} may hold secrets, and the agent can read what is in the sandbox.` +
        " To keep what Git does not track out of it: --leave-out PATTERN.",
  );
}

async function isFolder(path: string): Promise<boolean> {
  return readdir(path).then(
    () => true,
    () => false,
  );
}

/** What counts in a folder: the rules of the innermost repository. */
interface Rules extends FolderRules {
  /** Folder that the paths are relative to, with a final `/` unless it is the root. */
  readonly below: string;
  /** `tracked`: nothing but what Git tracks, in a folder that is ignored. */
  readonly only: "all" | "tracked";
}

/** What has been read so far below `root`. */
interface Content {
  readonly root: string;
  readonly files: WorkspaceFile[];
  bytes: number;
  /** Repositories that are not below the root, by the path of their `.git`. */
  readonly elsewhere: Map<string, RepositoryFolders>;
  readonly leaveOut: readonly string[];
  /** What is not copied; of a folder only its path. */
  readonly leftOut: string[];
}

/** A path of the workspace, and where its content is on disk. */
interface Place {
  readonly path: string;
  readonly disk: Buffer;
}

const SLASH = Buffer.from("/");
const isDotGit = (path: string): boolean => /(^|\/)\.git$/.test(path);
const isGits = (path: string): boolean => /(^|\/)\.git\//.test(path);

/** Synchronous: 50,000 files took twice as long with a promise per file. Names are read as bytes: not every one is UTF-8. */
function addFolder(content: Content, { path: folder, disk }: Place, outer: Rules): void {
  const entries = readdirSync(disk, { encoding: "buffer" }).map(textOfBytes).toSorted();
  const isNested = folder !== "" && entries.includes(".git") && !isGits(`${folder}/`);
  const rules = isNested ? rulesOfNested(content, folder, outer) : outer;
  for (const name of entries) {
    const path = folder === "" ? name : `${folder}/${name}`;
    addPath(content, { path, disk: Buffer.concat([disk, SLASH, bytesOfText(name)]) }, rules);
  }
}

/** Git reads a repository in a repository by its own rules alone. */
function rulesOfNested({ root, leaveOut }: Content, folder: string, outer: Rules): Rules {
  return { below: `${folder}/`, only: outer.only, ...rulesOfFolder(join(root, folder), leaveOut) };
}

function addPath(content: Content, { path, disk }: Place, outer: Rules): void {
  const { files } = content;
  const stat = lstatSync(disk);
  const name = path.slice(outer.below.length);
  const isOut =
    !isGits(`${path}/`) && (outer.only === "tracked" || outer.ignored.has(name) || isAlwaysOut(path));
  if (isOut && !outer.tracked.has(name)) {
    if (outer.only === "all" && !isOurs(path)) content.leftOut.push(stat.isDirectory() ? `${path}/` : path);
    return;
  }
  const rules: Rules = isOut ? { ...outer, only: "tracked" } : outer;
  if (files.length >= MAX_FILES) throw usageError(`--workspace: more than ${MAX_FILES} files.`);
  const mode = stat.mode & 0o777;
  if (stat.isDirectory()) {
    files.push({ kind: "folder", path, mode });
    addFolder(content, { path, disk }, rules);
  } else if (isDotGit(path) && addRepository(content, path)) return;
  else if (stat.isSymbolicLink()) {
    files.push({
      kind: "link",
      path,
      mode,
      target: textOfBytes(readlinkSync(disk, { encoding: "buffer" })),
    });
  } else if (stat.isFile()) {
    content.bytes += stat.size;
    if (content.bytes > MAX_WORKSPACE_BYTES) {
      throw usageError(
        `--workspace: the folder has more than ${bytes(MAX_WORKSPACE_BYTES)} (reached at ${path}).`,
        "Leave out what can be built or fetched again with lines in .gitignore.",
      );
    }
    files.push({ kind: "file", path, mode, bytes: readFileSync(disk), mtimeMs: stat.mtimeMs });
  }
  // Sockets, pipes and devices are not regular files.
}

/** Of a repository's own folder. */
const NONE: Rules = { below: "", only: "all", tracked: new Set(), ignored: new Set() };

/** Nobody misses our own data. */
const isOurs = (path: string) => posix.basename(path) === ".longhaul";

function leftHere({ leftOut }: Content): string[] {
  if (leftOut.length === 0) return [];
  return [`Not copied: ${listNames(leftOut)}.`];
}

/** Adds what a `.git` leads to that is no folder here. @returns false if it leads to nothing outside the folder */
function addRepository(content: Content, path: string): boolean {
  const folders = repositoryFolders(content.root, join(content.root, path));
  if (folders === undefined) return false;
  content.elsewhere.set(path, folders);
  content.files.push({ kind: "folder", path, mode: 0o755 });
  for (const [name, disk] of repositoryEntries(folders))
    addPath(content, { path: `${path}/${name}`, disk: Buffer.from(disk) }, NONE);
  const at = content.files.findLastIndex((file) => file.path === `${path}/config`);
  const config = content.files[at];
  // It may be that of a bare repository; the last value of a setting counts.
  if (config?.kind === "file")
    content.files[at] = {
      ...config,
      bytes: Buffer.concat([config.bytes, Buffer.from("\n[core]\nbare = false\n")]),
    };
  return true;
}

/** Where on disk the folder of a repository among the files is. */
function placeOf({ root, elsewhere }: Content, repository: string): string {
  for (const [dotGit, { common, gitFolder }] of elsewhere) {
    if (repository === dotGit) return gitFolder;
    if (repository.startsWith(`${dotGit}/`)) return join(common, repository.slice(dotGit.length));
  }
  return join(root, repository);
}

/** Templates and public halves hold none. */
const HARMLESS =
  /(\.(example|sample|template|tmpl|dist|defaults?|pub)|(^|\/)\.env\.d\.ts|(^|\/)known_hosts)$/i;

/** Folders in a home that hold what a program logs in with. */
const FOLDERS =
  /(^|\/)(\.aws|\.azure|\.ssh|\.gnupg|\.gcloud|\.config\/(gcloud|gh|glab-cli|hub|doctl|op|rclone)|\.kube|\.oci|\.password-store)\//;

/** Files that their programs write credentials into. Sources: the manuals of the programs. */
const NAMES = new RegExp(
  `(^|/)(${[
    String.raw`\.env[^/]*|[^/]+\.env|\.dev\.vars[^/]*`,
    String.raw`[._]netrc|\.pgpass|pgpass\.conf|\.my(login)?\.cnf|\.htpasswd|\.git-credentials|\.config/git/credentials`,
    String.raw`\.pypirc|\.gem/credentials|\.cargo/credentials(\.toml)?|\.composer/auth\.json|auth\.json|\.s3cfg|\.boto|\.passwd-s3fs`,
    String.raw`\.docker/config\.json|\.dockercfg|\.dockerconfigjson|\.config/containers/auth\.json`,
    String.raw`kubeconfig[^/]*|[^/]+\.kubeconfig|\.vault-token|\.terraformrc|credentials\.tfrc\.json|terraform\.tfstate(\.backup)?`,
    String.raw`credentials(\.(json|ya?ml|toml|ini|csv))?|\.?secrets?\.(json|ya?ml|toml|ini|env)|application_default_credentials\.json`,
    String.raw`(service[-_]?account|client_secret)[^/]*\.json|master\.key|rootkey\.csv`,
    String.raw`id_(rsa|dsa|ecdsa|ed25519)(_sk)?|[^/]+\.(ppk|p12|pfx|jks|keystore|kdbx)`,
  ].join("|")})$`,
  "i",
);

/** Files that hold a credential only if they have such a line; a reference to a variable is none. */
const LINES: readonly (readonly [RegExp, RegExp])[] = [
  [/(^|\/)\.?npmrc$/, /_(auth|authToken|password)\s*=\s*"?[^\s"$]/],
  [/(^|\/)\.yarnrc(\.yml)?$/, /(npmAuth(Token|Ident)|_authToken)"?\s*:?\s*"?[^\s"$:]/],
  [/(^|\/)(\.?pip\.conf|pip\.ini|\.condarc|uv\.toml)$/, /:\/\/[^\s/@$]+@/],
  [/(^|\/)nuget\.config$/i, /ClearTextPassword|"Password"/i],
  [/(^|\/)settings(-security)?\.xml$/, /<(password|passphrase|master)>[^<$]/],
  [/(^|\/)gradle\.properties$/, /(password|token|secret)[\w.]*\s*[=:]\s*[^\s$]/i],
];
/** A certificate or a public key in the same form is none. */
const PRIVATE_KEY = /^[ \t]*-----BEGIN ([A-Z0-9]+ )*PRIVATE KEY( BLOCK)?-----/m;

/** A key is at a file's beginning; settings are short. */
const LOOKED_AT_BYTES = 64 * 1024;

/** Files that look as if they held credentials, by their names and the beginning of what they contain. @returns the paths, in the files' order */
function credentialFiles(files: readonly WorkspaceFile[]): string[] {
  return files
    .filter((file) => file.kind !== "folder" && !isGits(file.path) && mayHold(file))
    .map(({ path }) => path);
}

/** What is taken of a repository's own folder has no credentials: see `safe-repositories.ts`. */

function mayHold(file: WorkspaceFile): boolean {
  if (HARMLESS.test(file.path)) return false;
  if (FOLDERS.test(file.path) || NAMES.test(file.path)) return true;
  if (file.kind !== "file") return false;
  const { bytes } = file;
  const size = Math.min(bytes.byteLength, LOOKED_AT_BYTES);
  const begin = Buffer.from(bytes.buffer, bytes.byteOffset, size);
  if (begin.includes("PRIVATE KEY") && PRIVATE_KEY.test(begin.toString("latin1"))) return true;
  return LINES.some(([name, line]) => name.test(file.path) && line.test(begin.toString("latin1")));
}

type Settings = Pick<RunConfig, "instructions" | "skills">;

/**
 * The instructions of a repository that apply to a folder within it: also those of the folders above, which are not copied.
 * The outermost first, because what is nearer counts more; then the folder's own.
 * @param ownText of the folder itself
 * @returns undefined if there are none
 */
export function withInstructionsAbove(
  folder: string,
  ownText: string | undefined,
  settings: Settings,
): string | undefined {
  const top = repositoryTop(folder);
  const above = top === undefined ? [] : foldersBetween(top, realpathSync(folder));
  const outer = above.flatMap((path) => {
    const text = instructionsIn(path, settings);
    return text === undefined ? [] : [`Instructions of ${relative(dirname(top ?? path), path)}/:\n${text}`];
  });
  if (outer.length === 0) return ownText;
  return [...outer, ...(ownText === undefined ? [] : [`Instructions of the workspace:\n${ownText}`])].join(
    "\n\n",
  );
}

/** From the top down, without the folder itself. */
function foldersBetween(top: string, folder: string): string[] {
  const folders: string[] = [];
  for (let current = folder; current !== top && current !== dirname(current);) {
    current = dirname(current);
    folders.unshift(current);
  }
  return folders;
}

function instructionsIn(folder: string, settings: Settings): string | undefined {
  const files = settings.instructions.files.flatMap((path) => {
    const file = join(folder, path);
    const isFile = lstatSync(file, { throwIfNoEntry: false })?.isFile() === true;
    return isFile ? [{ path, kind: "file", bytes: readFileSync(file) }] : [];
  });
  return projectFiles(files, settings).instructions;
}
