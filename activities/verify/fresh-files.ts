/** The files that are verified, in an empty sandbox: from the worker's git and from saves, never from the session's own sandbox. */
import { agentIdentity } from "../config/commit-settings.ts";
import { randomUUID } from "node:crypto";
import type { SessionGit } from "../config/git-settings.ts";
import { fetchParts } from "../git/fetch-parts.ts";
import { type Fetched, layOut, takeOn } from "../git/lay-out.ts";
import { gatherLfs } from "../git/lfs.ts";
import { LfsFailed } from "../git/lfs-store.ts";
import { lsRemote } from "../git/remote.ts";
import { restoredCommit } from "../git/restored-commit.ts";
import { GitFailed } from "../git/run-git.ts";
import { findStartPoint, refPatterns, type StartPoint } from "../git/start-point.ts";
import { type OwnCommand, readEnd, runOwn } from "../sandbox/own-command.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import { findBase } from "../store/bases.ts";
import { checkpointChain, latestCheckpoint } from "../store/checkpoints.ts";
import { endingWith, restoreWorkspace } from "../workspace/workspace.ts";
import type { HeldCommit, Verification } from "./files.ts";

const ASK_MS = 30_000;

/** The commit that the commands run on: with `restore`, its protected files are as the session found them. The same for each attempt. */
export function placedCommit({ settings }: Verification, source: HeldCommit): Promise<string> {
  const { commit, relay, repository } = source;
  if (settings.onProtected !== "restore") return Promise.resolve(commit);
  return restoredCommit(relay, { commit, base: repository.baseCommit, patterns: settings.protect });
}

/** All tracked files as a tree. Each is read: what an index says of it counts for nothing. */
const SNAPSHOT = `GIT_INDEX_FILE=$(mktemp -u); export GIT_INDEX_FILE
git read-tree "$1"
git add -u .
git write-tree
rm -f "$GIT_INDEX_FILE"`;
const SNAPSHOT_MS = 300_000;

/** Prints the tree of the files that Git tracks in the commit, as they are now. */
export const snapshotCommand = (commit: string): Omit<OwnCommand, "id"> => ({
  argv: ["sh", "-ec", SNAPSHOT, "sh", commit],
  env: { GIT_NO_REPLACE_OBJECTS: "1", LC_ALL: "C.UTF-8", LANGUAGE: "" },
  timeoutMs: SNAPSHOT_MS,
});

/** Tracked files that differ from a snapshot, for people. @throws SandboxLost */
export async function pathsChangedSince(
  fresh: Sandbox,
  commit: string,
  before: string,
): Promise<readonly string[]> {
  const outputFrom = async (command: Omit<OwnCommand, "id">) => {
    const end = await readEnd(fresh, await runOwn(fresh, { id: `changed-${randomUUID()}`, ...command }));
    return "out" in end ? end.out : undefined;
  };
  const after = (await outputFrom(snapshotCommand(commit)))?.trim() ?? "";
  const argv = ["git", "diff-tree", "-r", "-z", "--name-only", "--no-renames", before, after];
  const paths = await outputFrom({ argv, timeoutMs: SNAPSHOT_MS });
  return paths?.split("\0").filter((path) => path !== "") ?? ["the repository itself"];
}

/** A repository's history is needed whole, and nothing beside it, for a sandbox to begin on the session's base. */
export const mayHaveBase = ({ depth, submodules, lfs }: SessionGit): boolean =>
  depth === 0 && !submodules && !lfs;

/**
 * Fills the sandbox with the commit, or with the newest save of a session without a repository.
 * @param own the session's own sandbox: only files that Git LFS keeps are read from it, and checked
 * @returns why it cannot be filled; undefined if it is
 * @throws SandboxUnavailable, RepositoryUnavailable (retryable), SandboxLost
 */
export async function fillFresh(
  verification: Verification,
  { own, fresh }: { readonly own: Sandbox; readonly fresh: Sandbox },
  { source, commit }: { readonly source: HeldCommit | undefined; readonly commit: string | undefined },
): Promise<string | undefined> {
  const { deps, scope, session } = verification;
  const git = session.config.repository;
  if (git !== undefined && source !== undefined && commit !== undefined)
    return placeCommit(verification, { own, fresh, git, source, commit });
  const checkpoint = await latestCheckpoint(deps.store.db, session.id);
  if (checkpoint !== undefined)
    await restoreWorkspace(
      endingWith(scope.signal, fresh),
      await checkpointChain(deps.store.db, checkpoint.id),
    );
  return undefined;
}

interface Placing {
  readonly own: Sandbox;
  readonly fresh: Sandbox;
  readonly git: SessionGit;
  readonly source: HeldCommit;
  readonly commit: string;
}

async function placeCommit(
  { deps, scope }: Verification,
  { own, fresh, git, source, commit }: Placing,
): Promise<string | undefined> {
  const { relay, mirror, repository } = source;
  const { access, folder } = relay;
  const { signal } = scope;
  const { url, branch } = repository;
  try {
    const start = { ...(await startOf(source, git, signal)), commit };
    const from = { mirror: folder, commit };
    const parts = git.submodules ? await fetchParts(access, git, from, signal) : [];
    if ("refused" in parts) return `the submodules of the commit cannot be fetched: ${parts.refused}`;
    const objects = git.lfs ? await gatherLfs(relay, own, { named: git, url, mirror, commit }, signal) : [];
    const lfs = objects.length === 0 ? [] : [{ folder: "", mirror: folder, objects }];
    const fetched: Fetched = { mirror: folder, start, parts, lfs };
    const key = fresh.identity.base;
    const known = key === undefined ? undefined : await findBase(deps.store.db, key);
    if (known === undefined) await layOut(access, fresh, fetched, { repository: git, branch, signal });
    else
      await takeOn(access, fresh, fetched, {
        older: known.commit,
        branch,
        author: agentIdentity(git),
        signal,
      });
    return undefined;
  } catch (error) {
    if (error instanceof GitFailed || error instanceof LfsFailed)
      return `the commit cannot be checked out from the worker's copy: ${error.message}`;
    throw error;
  }
}

/** The remote's branches and tags, as a session that begins now would have them; none if it does not answer. */
async function startOf(
  { relay: { access }, mirror, repository, commit }: HeldCommit,
  { ref }: SessionGit,
  signal: AbortSignal,
): Promise<StartPoint> {
  const alone = { commit, name: commit, refs: [], defaultBranch: undefined };
  const remote = await lsRemote(access, repository.url, refPatterns(ref), { signal, timeoutMs: ASK_MS });
  if ("trouble" in remote) return alone;
  const { defaultBranch } = remote;
  const start = await findStartPoint(access, mirror, { ref, defaultBranch }).catch((error: unknown) => {
    if (error instanceof GitFailed) return undefined;
    throw error;
  });
  return start ?? alone;
}
