/**
 * Pushes a commit of a relay, and tells before any work is done whether that can be known to fail. Never by force, except over what
 * this session itself pushed in an abandoned attempt.
 */
import type { GitAccess } from "./git-access.ts";
import { gitReason } from "./git-words.ts";
import { hasCommit } from "./mirror.ts";
import type { Relay } from "./relay.ts";
import { lsRemote, remoteTrouble } from "./remote.ts";
import { runGit } from "./run-git.ts";
import { refusal, toRefusal, type Refusal } from "./trouble.ts";

export interface Push {
  readonly url: string;
  readonly branch: string;
  readonly commit: string;
  readonly allowDefaultBranch: boolean;
  /** Commits of this session that may be there and that nobody was told of, or that a reset abandoned. */
  readonly abandoned: readonly string[];
  /** Commits of this session that were delivered there. */
  readonly delivered?: readonly string[];
  readonly signal: AbortSignal;
}

const ASK_MS = 60_000;

/** @returns whether it went over own commits by force, and whether the remote had it already */
export async function pushCommit(
  relay: Relay,
  push: Push,
): Promise<{ readonly forced: boolean; readonly wasThere?: true } | Refusal> {
  const { access, folder } = relay;
  const { url, branch, commit, signal } = push;
  const ref = `refs/heads/${branch}`;
  const remote = await lsRemote(access, url, [ref], { signal, timeoutMs: ASK_MS });
  if ("trouble" in remote) return toRefusal(remote.trouble);
  if (remote.defaultBranch === branch && !push.allowDefaultBranch)
    return refusal(`${branch} is the default branch; set git.allowDefaultBranch to push there`);
  const there = remote.refs.get(ref);
  const lease =
    there !== undefined && push.abandoned.includes(there) && !(await contains(relay, commit, there));
  const args = [
    "push",
    "--porcelain",
    "--no-verify",
    ...(lease ? [`--force-with-lease=${ref}:${there}`] : []),
    "--",
    url,
    `${commit}:${ref}`,
  ];
  const result = await runGit(access, args, { cwd: folder, url, signal });
  const pushed = readPorcelain(result.out, ref);
  if (pushed === undefined) return toRefusal(remoteTrouble(url, result));
  if (pushed.flag === "!") {
    const isOwn = there !== undefined && push.delivered?.includes(there) === true;
    return refusal(reasonOf(pushed.summary, result.err, isOwn));
  }
  return { forced: pushed.flag === "+", wasThere: pushed.flag === "=" ? true : undefined };
}

async function contains({ access, folder }: Relay, commit: string, earlier: string): Promise<boolean> {
  if (!(await hasCommit(access, folder, earlier))) return false;
  return (await runGit(access, ["merge-base", "--is-ancestor", earlier, commit], { cwd: folder })).code === 0;
}

/** The line of `git push --porcelain` about a reference: its flag, and the words after it. */
export function readPorcelain(
  out: string,
  ref: string,
): { readonly flag: string; readonly summary: string } | undefined {
  for (const line of out.split("\n")) {
    const [flag = "", names = "", summary = ""] = line.split("\t");
    if (/^[ +\-*!=]$/.test(flag) && names.endsWith(`:${ref}`)) return { flag, summary };
  }
  return undefined;
}

/** With the server's messages: its hook says more than git's `declined`. */
function reasonOf(summary: string, err: string, isOwn: boolean): string {
  const remoteReason = /^remote: *\S/m.test(err) ? gitReason(err) : "";
  if (isOwn && summary.includes("non-fast-forward"))
    return "the session has rewritten commits that it had delivered to the branch; only what a retry abandons is pushed over. Deliver to another branch, or remove that one at the remote";
  if (/non-fast-forward|fetch first|stale info/.test(summary))
    return `the branch has commits that this session did not make, so nothing was pushed over them (${gitReason(summary)})`;
  const how = gitReason(summary);
  return remoteReason === "" ? how : `${remoteReason} (${how})`;
}

const HEADS = "refs/heads/";
const DRY_RUN_MS = 60_000;

/**
 * The branch that keeps another one from being made: Git has no branch `a` beside `a/b`.
 * @param refs full names, as the remote has them
 */
export function branchInTheWay(branch: string, refs: Iterable<string>): string | undefined {
  for (const ref of refs) {
    const other = ref.startsWith(HEADS) ? ref.slice(HEADS.length) : "";
    if (other !== "" && (branch.startsWith(`${other}/`) || other.startsWith(`${branch}/`))) return other;
  }
  return undefined;
}

export const inTheWay = (branch: string, other: string, url: string): string =>
  `${url} has a branch ${other}, so it cannot have a branch ${branch}`;

/**
 * Asks the remote for a push, which is not made. Hooks do not run, so a server may still refuse the push itself.
 * @returns why it would be refused
 */
export async function refusedPush(
  access: GitAccess,
  folder: string,
  push: {
    readonly url: string;
    readonly branch: string;
    readonly commit: string;
    readonly signal: AbortSignal;
  },
): Promise<Refusal | undefined> {
  const { url, branch, commit, signal } = push;
  const ref = `${HEADS}${branch}`;
  const args = ["push", "--dry-run", "--porcelain", "--no-verify", "--", url, `${commit}:${ref}`];
  const result = await runGit(access, args, { cwd: folder, url, signal, timeoutMs: DRY_RUN_MS });
  const answer = readPorcelain(result.out, ref);
  if (answer !== undefined && answer.flag !== "!") return undefined;
  if (answer !== undefined)
    return refusal(
      /non-fast-forward|fetch first|stale info/.test(answer.summary)
        ? `the branch ${branch} of ${url} has commits that the session would not start from. Choose another --branch, or start from it with --ref ${branch}`
        : `${url} would not take the branch ${branch}: ${gitReason(answer.summary)}`,
    );
  const trouble = remoteTrouble(url, result);
  if (trouble.kind !== "credential" || !access.hasToken(url)) return toRefusal(trouble);
  return refusal(
    `the worker's credential may read ${url}, but not push to it: ${gitReason(result.err)}. Give it the right to write (on GitHub: Contents, read and write), or start with --push never`,
  );
}
