/** From an address to files in the sandbox: fetches a session's repository and lays it out. */
import { posix } from "node:path";
import { agentIdentity, type GitIdentity } from "../config/commit-settings.ts";
import { isDelivered, toBranchName, type SessionGit } from "../config/git-settings.ts";
import { fatal, retryable } from "../contract/failures.ts";
import type { CommandSandbox } from "../sandbox/own-command.ts";
import { SandboxLost } from "../sandbox/sandbox.ts";
import { fetchParts } from "./fetch-parts.ts";
import type { GitAccess } from "./git-access.ts";
import { type LfsObject, LfsFailed } from "./lfs-store.ts";
import { fetchLfs, lfsFrames } from "./lfs.ts";
import { hasCommit, removeDamaged, updateMirror } from "./mirror.ts";
import { branchInTheWay, inTheWay, refusedPush } from "./push.ts";
import { lsRemote, remoteTrouble } from "./remote.ts";
import { git, GitFailed, runGit } from "./run-git.ts";
import { advance, checkOut, checkOutPart, putLfs } from "./sandbox-git.ts";
import {
  findStartPoint,
  tooLargeTree,
  withPack,
  type StartPoint,
  refPatterns,
  fetchByName,
  isCommit,
  noStart,
  startOn,
} from "./start-point.ts";
import type { Part } from "./submodules.ts";
import { toRefusal, type RemoteTrouble } from "./trouble.ts";

const ASK_MS = 30_000;

export interface Fetched {
  readonly mirror: string;
  readonly start: StartPoint;
  /** The submodules that are checked out. */
  readonly parts: readonly Part[];
  /** Files in Git LFS, by the folder of the checkout and its mirror. */
  readonly lfs: readonly {
    readonly folder: string;
    readonly mirror: string;
    readonly objects: readonly LfsObject[];
  }[];
}

/** @throws RepositoryUnavailable (retryable if the remote is away), BadConfiguration */
export async function fetchForSession(
  access: GitAccess,
  repository: SessionGit,
  sessionId: string,
  signal: AbortSignal,
): Promise<Fetched> {
  const { mirror, start } = await fetchStart(access, repository, sessionId, signal);
  const { url: base } = repository;
  await requireCheckout(access, { url: base, mirror, commit: start.commit }, signal);
  const parts = repository.submodules
    ? await fetchParts(access, repository, { mirror, commit: start.commit }, signal)
    : [];
  if ("refused" in parts) {
    const why = `The submodules of ${base} cannot be fetched: ${parts.refused}. Leave git.submodules out to work without them.`;
    throw unavailable(why, parts.isPassing);
  }
  for (const { submodule, mirror: own } of parts)
    await requireCheckout(access, { url: submodule.url, mirror: own, commit: submodule.commit }, signal);
  if (!repository.lfs) return { mirror, start, parts, lfs: [] };
  const repositories = [
    { folder: "", url: base, mirror, commit: start.commit },
    ...parts.map(({ submodule, parent, mirror: own }) => ({
      folder: posix.join(parent, submodule.path),
      url: submodule.url,
      mirror: own,
      commit: submodule.commit,
    })),
  ];
  const lfs = [];
  for (const source of repositories) {
    const objects = await fetchLfs(access, { named: repository, ...source }, signal).catch(
      (error: unknown) => {
        if (!(error instanceof LfsFailed)) throw error;
        const why = `The files that ${source.url} keeps in Git LFS cannot be fetched: ${error.message}. Leave git.lfs out to work with their pointers.`;
        throw unavailable(why, error.isPassing);
      },
    );
    if (objects.length > 0) lfs.push({ folder: source.folder, mirror: source.mirror, objects });
  }
  return { mirror, start, parts, lfs };
}

/** @throws RepositoryUnavailable (fatal) if no attempt at a checkout could succeed */
async function requireCheckout(
  access: GitAccess,
  { url, mirror, commit }: { readonly url: string; readonly mirror: string; readonly commit: string },
  signal: AbortSignal,
): Promise<void> {
  const why = await tooLargeTree(access, mirror, commit, { signal });
  if (why !== undefined)
    throw unavailable(
      `Commit ${commit.slice(0, 12)} of ${url} cannot be checked out: ${why}. Nothing was put into the sandbox; choose another --ref.`,
      false,
    );
}

interface LayOut {
  readonly repository: SessionGit;
  /** Undefined for a checkout on no branch, which becomes the base of several sessions' workspaces. */
  readonly branch: string | undefined;
  readonly signal: AbortSignal;
}

/**
 * Makes /workspace the session's checkout. @returns how many bytes Git's packs had
 * @throws RepositoryUnavailable (retryable) if the worker's copy of a repository turned out to be damaged
 */
export async function layOut(
  access: GitAccess,
  sandbox: CommandSandbox,
  fetched: Fetched,
  to: LayOut,
): Promise<number> {
  try {
    return await checkOutAll(access, sandbox, fetched, to);
  } catch (error) {
    to.signal.throwIfAborted();
    if (error instanceof SandboxLost) throw error;
    if (!(await removeDamaged(access, [fetched.mirror, ...fetched.parts.map(({ mirror }) => mirror)])))
      throw error;
    throw unavailable(
      `Our copy of ${to.repository.url} on the worker was damaged. It is cloned again.`,
      true,
    );
  }
}

/** More files than this are checked out as fast anew, for all sessions that begin there. */
const MAX_CHANGED = 1_000;

interface Ahead {
  /** How many commits. */
  readonly count: number;
  /** What differs. */
  readonly paths: readonly string[];
}

/**
 * What a session's start has that an older commit lacks.
 * @returns undefined if it is no part of the start's history, or differs from it in many files
 */
export async function commitsAhead(
  access: GitAccess,
  { mirror, start, parts, lfs }: Fetched,
  older: string,
): Promise<Ahead | undefined> {
  if (parts.length > 0 || lfs.length > 0) return undefined;
  const isPart = await runGit(access, ["merge-base", "--is-ancestor", older, start.commit], { cwd: mirror });
  if (isPart.code !== 0) return undefined;
  const changed = await runGit(access, ["diff-tree", "-r", "--name-only", "-z", older, start.commit], {
    cwd: mirror,
  });
  const paths = changed.out.split("\0").filter((path) => path !== "");
  if (changed.code !== 0 || paths.length >= MAX_CHANGED) return undefined;
  const count = await git(access, ["rev-list", "--count", start.commit, `^${older}`], { cwd: mirror });
  return { count: Number(count), paths };
}

/** Takes a checkout of an older commit, whose history the session's start has, on to that. @returns how many bytes Git's pack had */
export function takeOn(
  access: GitAccess,
  sandbox: CommandSandbox,
  { mirror, start }: Fetched,
  {
    older,
    branch,
    author,
    signal,
  }: {
    readonly older: string;
    readonly branch: string;
    readonly author: GitIdentity;
    readonly signal: AbortSignal;
  },
): Promise<number> {
  const { commit, defaultBranch } = start;
  return withPack(access, mirror, { start, depth: 0, known: older, signal }, (pack) =>
    advance(sandbox, { commit, branch, author, defaultBranch }, pack),
  );
}

async function checkOutAll(
  access: GitAccess,
  sandbox: CommandSandbox,
  { mirror, start, parts, lfs }: Fetched,
  to: LayOut,
): Promise<number> {
  const { repository, branch, signal } = to;
  const { url, depth } = repository;
  const author = agentIdentity(repository);
  const { commit, defaultBranch } = start;
  let bytes = await withPack(access, mirror, { start, depth, signal }, (pack) =>
    checkOut(sandbox, { url, branch, commit, defaultBranch, author }, pack),
  );
  for (const part of parts)
    bytes += await withPack(access, part.mirror, { start: part.start, depth, signal }, (pack) =>
      checkOutPart(sandbox, part, author, pack),
    );
  for (const { folder, mirror: own, objects } of lfs) await putLfs(sandbox, folder, lfsFrames(own, objects));
  return bytes;
}

async function fetchStart(access: GitAccess, repository: SessionGit, sessionId: string, signal: AbortSignal) {
  const { url, ref } = repository;
  const branch = toBranchName(repository, sessionId);
  const isPushed = isDelivered(repository);
  const remote = await lsRemote(access, url, refPatterns(ref), { signal, timeoutMs: ASK_MS });
  if ("trouble" in remote) throw awayOr(remote.trouble);
  const { defaultBranch } = remote;
  if (isPushed && branch === defaultBranch && !repository.allowDefaultBranch)
    throw fatal(
      "BadConfiguration",
      `${defaultBranch} is the default branch of ${url}, so nothing is pushed there. Choose another --branch, or set git.allowDefaultBranch.`,
    );
  const other = isPushed ? branchInTheWay(branch, remote.refs.keys()) : undefined;
  if (other !== undefined)
    throw fatal("BadConfiguration", `${inTheWay(branch, other, url)}. Choose another --branch.`);
  const from = startOn(remote, ref);
  try {
    const mirror = await updateMirror(access, url, { signal });
    await fetchBeside(access, mirror, { url, from, signal });
    const start = from && (await findStartPoint(access, mirror, { ref, defaultBranch }));
    if (start !== undefined) {
      if (isPushed) await requirePush(access, mirror, { url, branch, commit: start.commit, signal });
      return { mirror, start };
    }
  } catch (error) {
    throw error instanceof GitFailed ? awayOr(remoteTrouble(url, error.result)) : error;
  }
  const { message, fix = "" } = await noStart(access, url, remote, ref);
  throw fatal("RepositoryUnavailable", `${message} ${fix}`.trim());
}

/** @throws RepositoryUnavailable if the worker may not push, or the branch has other commits */
async function requirePush(
  access: GitAccess,
  mirror: string,
  push: {
    readonly url: string;
    readonly branch: string;
    readonly commit: string;
    readonly signal: AbortSignal;
  },
): Promise<void> {
  const refused = await refusedPush(access, mirror, push);
  if (refused === undefined) return;
  const why = `The work could not be pushed, so it was not begun: ${refused.refused}`;
  throw unavailable(why, refused.isPassing);
}

/** A start that is on no branch and no tag, such as a pull request's. */
async function fetchBeside(
  access: GitAccess,
  mirror: string,
  { url, from, signal }: { url: string; from: ReturnType<typeof startOn>; signal: AbortSignal },
): Promise<void> {
  if (from === undefined) return;
  if ("name" in from) {
    if (!/^refs\/(heads|tags)\//.test(from.name))
      await fetchByName(access, mirror, { url, name: from.name, signal });
  } else if (isCommit(from.commit) && !(await hasCommit(access, mirror, from.commit)))
    await fetchByName(access, mirror, { url, name: from.commit, signal });
}

const unavailable = (why: string, isPassing: boolean): Error =>
  (isPassing ? retryable : fatal)("RepositoryUnavailable", why);

function awayOr(trouble: RemoteTrouble): Error {
  const { refused, isPassing } = toRefusal(trouble);
  return unavailable(refused, isPassing);
}
