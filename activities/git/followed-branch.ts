/**
 * A pull request's branch and its base, as git has them: whose the newest commit is, which files conflict; both in the sandbox; and what
 * the worker itself does to that branch: merges its base into it, and removes it once it is merged.
 */
import type { CommandSandbox } from "../sandbox/own-command.ts";
import type { GitAccess } from "./git-access.ts";
import { hasCommit, updateMirror } from "./mirror.ts";
import { pushCommit, readPorcelain } from "./push.ts";
import { lsRemote, remoteTrouble } from "./remote.ts";
import { OWN_IDENTITY } from "./restored-commit.ts";
import { git, GitFailed, runGit } from "./run-git.ts";
import { feedAll, must, shell } from "./sandbox-git.ts";
import { withPack } from "./start-point.ts";
import { refusal, toRefusal, type Refusal } from "./trouble.ts";

const ASK_MS = 60_000;

export interface BranchHeads {
  /** The newest commits; undefined if there is no such branch. */
  readonly head: string | undefined;
  readonly base: string | undefined;
  /** A mirror that has both. */
  readonly mirror: string;
}

/** @throws GitFailed */
export async function readHeads(
  access: GitAccess,
  url: string,
  { branch, base, signal }: { readonly branch: string; readonly base: string; readonly signal: AbortSignal },
): Promise<BranchHeads> {
  const names = [`refs/heads/${branch}`, `refs/heads/${base}`];
  const remote = await lsRemote(access, url, names, { signal, timeoutMs: ASK_MS });
  if ("trouble" in remote) {
    const { trouble } = remote;
    throw new GitFailed(["ls-remote"], { code: 128, out: "", err: trouble.message, trouble });
  }
  const [head, baseCommit] = names.map((name) => remote.refs.get(name));
  let mirror = await updateMirror(access, url, { wants: head ?? baseCommit, signal });
  if (baseCommit !== undefined && !(await hasCommit(access, mirror, baseCommit)))
    mirror = await updateMirror(access, url, { signal });
  return { head, base: baseCommit, mirror };
}

/**
 * Whose the newest commit of the branch is.
 * @param own commits that the session has pushed there, or had begun to push, newest first
 * @returns `ours` for one of them, or for a clean merge of the base onto one of them
 */
export async function whoseHead(
  access: GitAccess,
  { head, base, mirror }: BranchHeads,
  own: readonly { readonly commit: string; readonly isDone: boolean }[],
): Promise<"ours" | "on-top" | "rewritten" | "gone"> {
  if (head === undefined) return "gone";
  const commits = own.map(({ commit }) => commit);
  if (commits.includes(head)) return "ours";
  if (base !== undefined && (await isCleanMerge(access, mirror, { head, base, own: commits }))) return "ours";
  const newest = own.find(({ isDone }) => isDone);
  if (newest === undefined) return "on-top";
  return (await isAncestor(access, mirror, newest.commit, head)) ? "on-top" : "rewritten";
}

/** So many merges of the base, one on the other, are looked through. Chosen: the button was pressed so often since the session's push. */
const MAX_MERGES = 50;

/** As a forge's "Update branch" makes one, or several: the tree of each is what git itself makes of both. */
async function isCleanMerge(
  access: GitAccess,
  mirror: string,
  { head, base, own }: { readonly head: string; readonly base: string; readonly own: readonly string[] },
): Promise<boolean> {
  let at: string | undefined = head;
  for (let merges = 0; merges < MAX_MERGES && at !== undefined; merges += 1) {
    at = await beforeMerge(access, mirror, { head: at, base });
    if (at !== undefined && own.includes(at)) return true;
  }
  return false;
}

/** The commit that a clean merge of the base was made on; undefined if it is none. */
async function beforeMerge(
  access: GitAccess,
  mirror: string,
  { head, base }: { readonly head: string; readonly base: string },
): Promise<string | undefined> {
  const parents = await runGit(access, ["rev-list", "--parents", "-n", "1", head], { cwd: mirror });
  const [, first = "", second = "", ...more] = parents.out.trim().split(" ");
  if (parents.code !== 0 || more.length > 0 || second === "") return undefined;
  if (!(await isAncestor(access, mirror, second, base))) return undefined;
  const merged = await runGit(access, ["merge-tree", "--write-tree", first, second], { cwd: mirror });
  const tree = await git(access, ["rev-parse", `${head}^{tree}`], { cwd: mirror });
  return merged.code === 0 && merged.out.trim() === tree ? first : undefined;
}

/** Whether the branch has the base's newest commit. */
export const hasBase = (access: GitAccess, { head, base, mirror }: BranchHeads): Promise<boolean> =>
  head === undefined || base === undefined ? Promise.resolve(true) : isAncestor(access, mirror, base, head);

async function isAncestor(access: GitAccess, cwd: string, earlier: string, later: string): Promise<boolean> {
  if (!(await hasCommit(access, cwd, earlier))) return false;
  return (await runGit(access, ["merge-base", "--is-ancestor", earlier, later], { cwd })).code === 0;
}

/**
 * The files in which branch and base conflict; git alone decides that, without a work tree.
 * @returns undefined if it cannot be said, as with a git that has no `merge-tree --write-tree` (2.38)
 */
export async function conflictsBetween(
  access: GitAccess,
  { head, base, mirror }: BranchHeads,
): Promise<readonly string[] | undefined> {
  if (head === undefined || base === undefined) return undefined;
  const args = ["merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", base, head];
  const merged = await runGit(access, args, { cwd: mirror });
  if (merged.code === 0) return [];
  if (merged.code !== 1) return undefined;
  const [, ...files] = merged.out.split("\0").filter((name) => name !== "");
  return files;
}

/** Takes the session's branch on only if that loses nothing: nothing is changed, and its commits are part of the newer one. */
const SHOW = `git update-ref --stdin
if [ -n "$ONTO" ] && [ "$(git symbolic-ref -q --short HEAD)" = "$BRANCH" ] &&
  [ -z "$(git status --porcelain --untracked-files=no)" ] && git merge-base --is-ancestor HEAD "$ONTO"
then git merge -q --ff-only "$ONTO"; fi`;

interface HeadsToShow {
  readonly branch: string;
  readonly base: string;
  /** A commit that the sandbox has. */
  readonly known: string;
  /** The session's branch may be taken on to the newest commit. */
  readonly mayAdvance: boolean;
  readonly signal: AbortSignal;
}

/**
 * Sets `origin/BRANCH` and `origin/BASE`. @returns how many bytes the pack had
 * @throws SandboxUnavailable (retryable), SandboxLost, GitFailed
 */
export async function showHeads(
  access: GitAccess,
  sandbox: CommandSandbox,
  { head, base, mirror }: BranchHeads,
  to: HeadsToShow,
): Promise<number> {
  const refs: (readonly [string, string])[] = [];
  if (base !== undefined) refs.push([`refs/remotes/origin/${to.base}`, base]);
  if (head !== undefined) refs.push([`refs/remotes/origin/${to.branch}`, head]);
  const newest = head ?? base;
  if (newest === undefined) return 0;
  const known = (await hasCommit(access, mirror, to.known)) ? { known: to.known } : {};
  const start = { commit: newest, name: to.branch, refs, defaultBranch: undefined };
  return withPack(access, mirror, { start, depth: 0, ...known, signal: to.signal }, async (pack) => {
    const index = { argv: ["git", "index-pack", "--stdin", "--fix-thin"] };
    const bytes = await feedAll(sandbox, "unpack the newest commits", index, pack.bytes);
    await must(sandbox, "show the newest commits", {
      argv: shell(SHOW),
      env: { BRANCH: to.branch, ONTO: to.mayAdvance && head !== undefined ? head : "" },
      stdin: Buffer.from(refs.map(([name, object]) => `update ${name} ${object}\n`).join("")),
    });
    return bytes;
  });
}

interface TendedBranch {
  /** The repository's address. */
  readonly url: string;
  readonly branch: string;
  readonly signal: AbortSignal;
}

/**
 * A merge of the base into the branch, as a forge's "Update branch" makes one: its first parent is the branch's newest commit, and its
 * tree is what git makes of both.
 * @returns the same commit each time; a refusal if they conflict. @throws GitFailed
 */
export async function mergeOfBase(
  access: GitAccess,
  { head, base, mirror }: BranchHeads,
  { branch, into }: { readonly branch: string; readonly into: string },
): Promise<{ readonly commit: string } | Refusal> {
  if (head === undefined || base === undefined) return refusal("one of the branches is not there");
  const merged = await runGit(access, ["merge-tree", "--write-tree", head, base], { cwd: mirror });
  if (merged.code !== 0) return refusal(`${into} conflicts with it`);
  // Another attempt makes the same commit.
  const date = await git(access, ["show", "-s", "--format=%cd", "--date=raw", base], { cwd: mirror });
  const dates = { GIT_AUTHOR_DATE: date, GIT_COMMITTER_DATE: date };
  const own = { ...access, environment: { ...access.environment, ...OWN_IDENTITY, ...dates } };
  const message = `Merge ${into} into ${branch}`;
  const args = ["commit-tree", merged.out.trim(), "-p", head, "-p", base, "-m", message];
  return { commit: await git(own, args, { cwd: mirror }) };
}

/** Never by force: what somebody else has pushed meanwhile stays. @returns a refusal if it is not on the remote */
export async function pushMerge(
  access: GitAccess,
  { mirror }: BranchHeads,
  { commit, ...branch }: TendedBranch & { readonly commit: string },
): Promise<Refusal | undefined> {
  const push = { ...branch, commit, allowDefaultBranch: false, abandoned: [] };
  const result = await pushCommit({ access, folder: mirror }, push);
  return "refused" in result ? result : undefined;
}

/** Only while it is at this commit. @returns a refusal if it is still there */
export async function removeBranch(
  access: GitAccess,
  { mirror }: Pick<BranchHeads, "mirror">,
  { url, branch, commit, signal }: TendedBranch & { readonly commit: string },
): Promise<Refusal | undefined> {
  const ref = `refs/heads/${branch}`;
  const lease = `--force-with-lease=${ref}:${commit}`;
  const args = ["push", "--porcelain", "--no-verify", lease, "--", url, `:${ref}`];
  const result = await runGit(access, args, { cwd: mirror, url, signal });
  const removed = readPorcelain(result.out, ref);
  if (removed === undefined) return toRefusal(remoteTrouble(url, result));
  return removed.flag === "!" ? refusal(removed.summary) : undefined;
}
