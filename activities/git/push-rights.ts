/** What can be known of a push before any work is done: whether the branch can have its name, and whether the worker may push. */
import type { GitAccess } from "./git-access.ts";
import { gitReason } from "./git-reason.ts";
import { readPorcelain } from "./push.ts";
import { troubleOf } from "./remote.ts";
import { runGit } from "./run-git.ts";
import { refusal, refusalOf, type Refusal } from "./trouble.ts";

const HEADS = "refs/heads/";
const ASK_MS = 60_000;

/**
 * The branch that keeps another one from being made: Git has no branch `a` beside `a/b`. Pure.
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
  const result = await runGit(access, args, { cwd: folder, url, signal, timeoutMs: ASK_MS });
  const answer = readPorcelain(result.out, ref);
  if (answer !== undefined && answer.flag !== "!") return undefined;
  if (answer !== undefined)
    return refusal(
      /non-fast-forward|fetch first|stale info/.test(answer.summary)
        ? `the branch ${branch} of ${url} has commits that the session would not start from. Choose another --branch, or start from it with --ref ${branch}`
        : `${url} would not take the branch ${branch}: ${gitReason(answer.summary)}`,
    );
  const trouble = troubleOf(url, result);
  if (trouble.kind !== "credential" || !access.hasToken(url)) return refusalOf(trouble);
  return refusal(
    `the worker's credential may read ${url}, but not push to it: ${gitReason(result.err)}. Give it the right to write (on GitHub: Contents, read and write), or start with --push never`,
  );
}
