/**
 * Facts of a pull request on GitHub, by its REST API of version 2022-11-28. Source: docs.github.com/rest. What only its other API knows
 * is in github-threads.ts.
 */
import { askForge, askPages, ForgeRefusal, type ForgeCall } from "./calls.ts";
import {
  checkState,
  withRequired,
  type CheckFacts,
  type ForgeUser,
  type PullRequestFacts,
  type ReviewFacts,
} from "./facts.ts";
import { requirePullRequest } from "./forge.ts";
import { toUser, type GitHubUser } from "./github-form.ts";
import { isQueued } from "./github-graphql.ts";

const repository = ({ forge }: ForgeCall) => `/repos/${forge.project}`;

/** @throws ForgeRefusal */
export async function githubPullRequest(call: ForgeCall, number: number): Promise<PullRequestFacts> {
  const value = await askForge(call, "GET", `${repository(call)}/pulls/${number}`);
  const { html_url: url, number: index } = { ...(value as Partial<PullAnswer> | null) };
  const answer = requirePullRequest(call, value as PullAnswer, { url, number: index });
  const { title, body, state, merged, draft, user, labels, head, base, mergeable } = answer;
  const { merge_commit_sha: merge } = answer;
  const open = state === "open" ? "open" : "closed";
  return {
    number,
    repositoryId: String(base.repo.id),
    url: url ?? "",
    title,
    text: body ?? "",
    state: merged ? "merged" : open,
    isDraft: draft === true,
    author: toUser(user),
    labels: labels.map(({ name }) => name),
    head: {
      branch: head.ref,
      commit: head.sha,
      isHere: head.repo === null ? undefined : head.repo.full_name === base.repo.full_name,
    },
    base: { branch: base.ref, commit: base.sha },
    merge: mergeOf(mergeable),
    isQueued: open === "open" ? await isQueued(call, number) : false,
    // Of an open one, it is the commit with which GitHub tries the merge.
    mergeCommit: merged ? (merge ?? undefined) : undefined,
  };
}

/** Null while it is computed. */
function mergeOf(mergeable: boolean | null | undefined): PullRequestFacts["merge"] {
  if (mergeable === true) return "clean";
  return mergeable === false ? "conflict" : "unknown";
}

/** Check runs (of Actions and Apps) and commit statuses: who reads only one kind misses the other. @throws ForgeRefusal */
export async function githubChecks(
  call: ForgeCall,
  { head, base }: Pick<PullRequestFacts, "head" | "base">,
): Promise<readonly CheckFacts[]> {
  const commit = `${repository(call)}/commits/${head.commit}`;
  const runs = (await askPages(
    call,
    // Of a run again, only the newest attempt counts.
    `${commit}/check-runs?filter=latest`,
    (answer) => (answer as { check_runs?: unknown }).check_runs,
  )) as readonly RunAnswer[];
  const statuses = (await askPages(
    call,
    `${commit}/status`,
    (answer) => (answer as { statuses?: unknown }).statuses,
  )) as readonly StatusAnswer[];
  return withRequired(
    [
      ...runs.map(({ id, name, status, conclusion, html_url: url }) => ({
        name,
        state: status === "completed" ? checkState(conclusion) : ("running" as const),
        url: url ?? undefined,
        job: String(id),
      })),
      ...statuses.map(({ context, state, target_url: url }) => ({
        name: context,
        state: checkState(state),
        url: url ?? undefined,
        job: undefined,
      })),
    ],
    await requiredBy(call, base.branch),
  );
}

/** By rulesets, and by the older protection of branches. @returns undefined if the token may not know */
async function requiredBy(call: ForgeCall, branch: string): Promise<readonly string[] | undefined> {
  const name = encodeURIComponent(branch);
  try {
    const rules = (await askPages(
      call,
      `${repository(call)}/rules/branches/${name}`,
    )) as readonly RuleAnswer[];
    const { protection } = (await askForge(
      call,
      "GET",
      `${repository(call)}/branches/${name}`,
    )) as BranchAnswer;
    return [
      ...rules.flatMap(({ type, parameters }) =>
        type === "required_status_checks" ? (parameters?.required_status_checks ?? []) : [],
      ),
      ...(protection?.required_status_checks?.contexts ?? []).map((context) => ({ context })),
    ].map(({ context }) => context);
  } catch (error) {
    if (error instanceof ForgeRefusal && !error.isPassing) return undefined;
    throw error;
  }
}

/**
 * By a ruleset, which anybody may read, or by the older protection, whose rules only administrators may read: others see only that it is
 * behind. @throws ForgeRefusal
 */
export async function githubDemandsNewestBase(
  call: ForgeCall,
  { number, base }: Pick<PullRequestFacts, "number" | "base">,
): Promise<boolean> {
  const pull = (await askForge(call, "GET", `${repository(call)}/pulls/${number}`)) as PullAnswer;
  if (pull.mergeable_state === "behind") return true;
  const path = `${repository(call)}/rules/branches/${encodeURIComponent(base.branch)}`;
  const rules = (await askPages(call, path)) as readonly RuleAnswer[];
  return rules.some(({ parameters }) => parameters?.strict_required_status_checks_policy === true);
}

/** Reviews that were sent and stand, the oldest first. @throws ForgeRefusal */
export async function githubReviews(call: ForgeCall, number: number): Promise<readonly ReviewFacts[]> {
  const path = `${repository(call)}/pulls/${number}/reviews`;
  const rows = (await askPages(call, path)) as readonly ReviewAnswer[];
  return rows.flatMap(({ id, user, state, body, commit_id: commit }) => {
    const verdict = VERDICTS.get(state);
    const facts = { id, author: toUser(user), text: body, commit: commit ?? undefined };
    return verdict === undefined ? [] : [{ ...facts, verdict }];
  });
}

/** Neither one that is still written, nor one that was dismissed. */
const VERDICTS: ReadonlyMap<string, ReviewFacts["verdict"]> = new Map([
  ["APPROVED", "approved"],
  ["CHANGES_REQUESTED", "changes-requested"],
  ["COMMENTED", "commented"],
]);

/**
 * Whether a person may write to the repository. The answer must be about the same id: a login may have been taken by somebody else.
 * @throws ForgeRefusal, unless there is no such person
 */
export async function githubMayWrite(call: ForgeCall, { id, login }: ForgeUser): Promise<boolean> {
  const path = `${repository(call)}/collaborators/${encodeURIComponent(login)}/permission`;
  try {
    const { permission, user } = (await askForge(call, "GET", path)) as PermissionAnswer;
    return user?.id === id && /^(write|admin)$/.test(permission);
  } catch (error) {
    if (error instanceof ForgeRefusal && error.status === 404) return false;
    throw error;
  }
}

interface PullAnswer {
  readonly number: number;
  readonly html_url: string;
  readonly title: string;
  readonly body: string | null;
  readonly state: string;
  readonly merged: boolean;
  readonly draft?: boolean;
  readonly mergeable: boolean | null;
  readonly mergeable_state?: string;
  readonly user: GitHubUser | null;
  readonly labels: readonly { readonly name: string }[];
  readonly head: {
    readonly ref: string;
    readonly sha: string;
    readonly repo: { readonly full_name: string } | null;
  };
  readonly base: {
    readonly ref: string;
    readonly sha: string;
    readonly repo: { readonly id: number; readonly full_name: string };
  };
  readonly merge_commit_sha: string | null;
}

interface RunAnswer {
  readonly id: number;
  readonly name: string;
  readonly status: string;
  readonly conclusion: string | null;
  readonly html_url: string | null;
}

interface StatusAnswer {
  readonly context: string;
  readonly state: string;
  readonly target_url: string | null;
}

interface RuleAnswer {
  readonly type: string;
  readonly parameters?: {
    readonly required_status_checks?: readonly { readonly context: string }[];
    readonly strict_required_status_checks_policy?: boolean;
  };
}

interface BranchAnswer {
  readonly protection?: { readonly required_status_checks?: { readonly contexts?: readonly string[] } };
}

interface ReviewAnswer {
  readonly id: number;
  readonly user: GitHubUser | null;
  readonly state: string;
  readonly body: string;
  readonly commit_id: string | null;
}

interface PermissionAnswer {
  readonly permission: string;
  readonly user: { readonly id: number } | null;
}
