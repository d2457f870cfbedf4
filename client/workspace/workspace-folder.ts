/** Reads a folder of the person's machine as the session's initial workspace. */
import { lstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { lstat, readdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import ignore, { type Ignore } from "ignore";
import type { WorkspaceFile } from "../../activities/store/workspace-pack.ts";
import { usageError } from "../console/errors.ts";
import { bytes, listNames, present } from "../console/format.ts";
import { withSafeRepositories } from "./safe-repositories.ts";

/** Source: MAX_PACK_BYTES of the checkpoints. */
const MAX_WORKSPACE_BYTES = 256 * 1024 * 1024;
const MAX_FILES = 200_000;
/** Not needed in the sandbox: rebuilt there, or our own data. `.git` is included, because agents read its history. */
const ALWAYS_OUT = ["node_modules", ".longhaul"];

export interface FolderContent {
  readonly files: readonly WorkspaceFile[];
  readonly bytes: number;
  /** Notes for the person, one per line. */
  readonly notes: readonly string[];
}

/**
 * The folder's files, except those ignored by `.gitignore` files (also nested ones), `node_modules` and `.longhaul`.
 * Repositories are included as a clone would have them: their configuration may hold tokens in addresses and headers.
 * @throws ClientError (usage) if it is not a folder, cannot be read or is larger than 256 MB
 */
export async function readFolder(folder: string): Promise<FolderContent> {
  const root = resolve(folder);
  const stat = await lstat(root).catch(() => undefined);
  if (stat === undefined || !(await isFolder(root))) {
    throw usageError(`--workspace: ${folder} is not a folder.`);
  }
  const content: Content = { root, files: [], bytes: 0 };
  try {
    addFolder(content, "", []);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === undefined) throw error;
    throw usageError(
      `--workspace: ${(error as Error).message}`,
      "Make it readable, or leave it out with a line in .gitignore.",
    );
  }
  const safe = withSafeRepositories(content.files, { bareRepositories: true });
  return {
    files: safe.files,
    bytes: content.bytes,
    notes: notesOf(safe.files, safe.leftOut),
  };
}

/** Names of files that usually contain secrets; templates of such files do not. */
const SECRET_FILES =
  /(^|\/)(\.env(\.[^/]+)?|\.envrc|\.netrc|\.pypirc|\.git-credentials|\.htpasswd|id_(rsa|dsa|ecdsa|ed25519))$/;
const TEMPLATES = /\.(example|sample|template|dist|defaults?)$/;

function notesOf(files: readonly WorkspaceFile[], leftOut: readonly string[]): string[] {
  const secret = files.filter(({ path }) => SECRET_FILES.test(path) && !TEMPLATES.test(path));
  return present(
    leftOut.length > 0 &&
      `The repository goes into the sandbox as a clone would have it, without ${listNames(leftOut)}.`,
    secret.length > 0 &&
      `Warning: ${listNames(secret.map(({ path }) => path))} may hold secrets, and the agent can read what is in the sandbox.` +
        " To keep it out, name it in .gitignore.",
  );
}

async function isFolder(path: string): Promise<boolean> {
  return readdir(path).then(
    () => true,
    () => false,
  );
}

interface Rules {
  /** Folder of the `.gitignore`, relative, with a final `/` unless it is the root. */
  readonly below: string;
  readonly ignored: Ignore;
}

/** What has been read so far below `root`. */
interface Content {
  readonly root: string;
  readonly files: WorkspaceFile[];
  bytes: number;
}

/** Synchronous: 50,000 files took twice as long with a promise per file. */
function addFolder(content: Content, folder: string, outer: readonly Rules[]): void {
  const { root, files } = content;
  const entries = readdirSync(join(root, folder), { withFileTypes: true });
  entries.sort((a, b) => (a.name < b.name ? -1 : 1));
  const own = entries.find((entry) => entry.name === ".gitignore" && entry.isFile());
  const rules =
    own === undefined
      ? outer
      : [
          ...outer,
          { below: folder, ignored: ignore().add(readFileSync(join(root, folder, own.name), "utf8")) },
        ];
  for (const entry of entries) {
    const path = `${folder}${entry.name}`;
    if (ALWAYS_OUT.includes(entry.name)) continue;
    if (isIgnored(rules, entry.isDirectory() ? `${path}/` : path)) continue;
    if (files.length >= MAX_FILES) throw usageError(`--workspace: more than ${MAX_FILES} files.`);
    const full = join(root, path);
    const stat = lstatSync(full);
    const mode = stat.mode & 0o777;
    if (stat.isDirectory()) {
      files.push({ kind: "folder", path, mode });
      addFolder(content, `${path}/`, rules);
    } else if (stat.isSymbolicLink()) {
      files.push({ kind: "link", path, mode, target: readlinkSync(full) });
    } else if (stat.isFile()) {
      content.bytes += stat.size;
      if (content.bytes > MAX_WORKSPACE_BYTES) {
        throw usageError(
          `--workspace: the folder has more than ${bytes(MAX_WORKSPACE_BYTES)} (reached at ${path}).`,
          "Leave out what can be built or fetched again with lines in .gitignore.",
        );
      }
      files.push({ kind: "file", path, mode, bytes: readFileSync(full), mtimeMs: stat.mtimeMs });
    }
    // Sockets, pipes and devices are not regular files.
  }
}

/** Git's rule: the innermost `.gitignore` with a rule for a path decides. */
function isIgnored(rules: readonly Rules[], path: string): boolean {
  // Git's own files are never subject to its rules.
  if (path === ".git/" || path.startsWith(".git/")) return false;
  for (const { below, ignored } of rules.toReversed()) {
    const verdict = ignored.test(path.slice(below.length));
    if (verdict.ignored) return true;
    if (verdict.unignored) return false;
  }
  return false;
}
