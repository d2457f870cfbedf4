/** Git without the programs that a repository's configuration names: for folders that somebody else may have written. */
import { spawnSync } from "node:child_process";
import { missing } from "../console/errors.ts";
import { childEnvironment } from "../setup/processes.ts";

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

/** @returns what it printed @throws ClientError (missing) without Git; GitFailed with its words */
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
  if (ended.status !== 0 && !mayFail) throw new GitFailed(ended.stderr.toString().trim());
  return ended.stdout;
}

export class GitFailed extends Error {}
