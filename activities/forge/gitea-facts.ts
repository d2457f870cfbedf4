/**
 * Facts of a pull request on Gitea and Forgejo. Source: the description that each server has at /swagger.v1.json; measured with Gitea
 * 1.24.6 (test/forge). There is no ETag.
 */
import { askForge, ForgeRefusal, type ForgeCall } from "./calls.ts";
import {
  checkState,
  newestResults,
  withRequired,
  type CheckFacts,
  type ForgeUser,
  type PullRequestFacts,
} from "./facts.ts";
import { requireList, requirePullRequest } from "./forge.ts";
import { giteaJobKey } from "./gitea-actions.ts";
import { toUser, type GitHubUser } from "./github-form.ts";

const PAGE_SIZE = 50;
/** Chosen: 1,000 statuses, reviews or comments are read. */
const MAX_PAGES = 20;

/** Its path in the API. */
export const giteaRepository = ({ forge }: ForgeCall) => `/repos/${forge.project}`;

/** @throws ForgeRefusal */
export async function giteaPullRequest(call: ForgeCall, number: number): Promise<PullRequestFacts> {
  const value = await askForge(call, "GET", `${giteaRepository(call)}/pulls/${number}`);
  const { html_url: url, number: index } = { ...(value as Partial<PullAnswer> | null) };
  const answer = requirePullRequest(call, value as PullAnswer, { url, number: index });
  const { head, base } = answer;
  return {
    number: answer.number,
    repositoryId: String(base.repo_id),
    url: answer.html_url,
    title: answer.title,
    text: answer.body,
    state: stateOf(answer),
    isDraft: answer.draft,
    author: toUser(answer.user),
    labels: (answer.labels ?? []).map(({ name }) => name),
    head: {
      branch: head.ref,
      commit: head.sha,
      isHere: head.repo === null ? undefined : head.repo_id === base.repo_id,
    },
    base: { branch: base.ref, commit: base.sha },
    // False while it is computed, for a conflict, for an error and for a draft alike.
    merge: answer.mergeable ? "clean" : "unknown",
    // There is no queue.
    isQueued: false,
    mergeCommit: answer.merged ? (answer.merge_commit_sha ?? undefined) : undefined,
  };
}

function stateOf({ merged, state }: PullAnswer): PullRequestFacts["state"] {
  if (merged) return "merged";
  return state === "open" ? "open" : "closed";
}

/**
 * Statuses of a commit, Actions among them, and what the branch that it goes into requires. Readable without rights over the
 * repository.
 * @throws ForgeRefusal
 */
export async function giteaChecks(
  call: ForgeCall,
  { head, base }: Pick<PullRequestFacts, "head" | "base">,
): Promise<readonly CheckFacts[]> {
  const checks = await statusesOf(call, head.commit);
  const branch = (await askForge(
    call,
    "GET",
    `${giteaRepository(call)}/branches/${encodeURIComponent(base.branch)}`,
  )) as BranchAnswer;
  const required = branch.enable_status_check ? (branch.status_check_contexts ?? []) : [];
  return withRequired(checks, required);
}

async function statusesOf(call: ForgeCall, commit: string): Promise<readonly CheckFacts[]> {
  const path = `${giteaRepository(call)}/commits/${encodeURIComponent(commit)}/status`;
  const statuses: StatusAnswer[] = [];
  for (let page = 1; page <= MAX_PAGES; page += 1) {
    const answer = (await askForge(call, "GET", `${path}?limit=${PAGE_SIZE}&page=${page}`)) as {
      readonly statuses?: readonly StatusAnswer[] | null;
    };
    const more = answer.statuses ?? [];
    statuses.push(...more);
    if (more.length === 0) break;
  }
  return statuses.map(({ context, status, target_url: target }) => {
    // Of Actions it is a path, and keeps the repository's former name.
    const url = URL.parse(target ?? "", call.forge.api)?.href;
    const job = giteaJobKey(url, commit);
    return { name: context, state: checkState(status), isRequired: undefined, url, job };
  });
}

/** Chosen: of the base's newest five commits, one has mostly got results. */
const BASE_COMMITS = 5;

/** A job's name ends with what started it, and on the base that is something else. @throws ForgeRefusal */
export async function giteaBaseChecks(
  call: ForgeCall,
  { base }: Pick<PullRequestFacts, "base">,
  names: readonly string[],
): Promise<readonly CheckFacts[]> {
  if (names.length === 0) return [];
  const fields = { sha: base.branch, limit: String(BASE_COMMITS), stat: "false", files: "false" };
  const path = `${giteaRepository(call)}/commits?${new URLSearchParams(fields).toString()}`;
  const commits = requireList(call, await askForge(call, "GET", path)) as readonly { readonly sha: string }[];
  const bare = names.map(withoutEvent);
  const results: (readonly CheckFacts[])[] = [];
  const newest = () => newestResults(bare, results);
  for (const { sha } of commits) {
    const checks = await statusesOf(call, sha);
    results.push(checks.map((check) => ({ ...check, name: withoutEvent(check.name) })));
    if (newest().length === bare.length) break;
  }
  return newest().map((check) => ({ ...check, name: names[bare.indexOf(check.name)] ?? check.name }));
}

const withoutEvent = (name: string): string => name.replace(/ \([a-z_]+\)$/, "");

/**
 * Whether a person may write to the repository: everyone to whom work can be assigned may. What others may is told only to
 * administrators (403), so this asks for no single person.
 * @throws ForgeRefusal
 */
export async function giteaMayWrite(call: ForgeCall, user: Pick<ForgeUser, "id">): Promise<boolean> {
  const people = requireList(
    call,
    await askForge(call, "GET", `${giteaRepository(call)}/assignees`),
  ) as readonly GitHubUser[];
  return people.some(({ id }) => id === user.id);
}

/** Of the rule that holds for the base, which only administrators of the repository may read. @throws ForgeRefusal if it may pass */
export async function giteaDemandsNewestBase(
  call: ForgeCall,
  { base }: Pick<PullRequestFacts, "base">,
): Promise<boolean | undefined> {
  const branch = `${giteaRepository(call)}/branches/${encodeURIComponent(base.branch)}`;
  const { effective_branch_protection_name: rule } = (await askForge(call, "GET", branch)) as BranchAnswer;
  if (rule === undefined || rule === "") return false;
  try {
    const path = `${giteaRepository(call)}/branch_protections/${encodeURIComponent(rule)}`;
    return ((await askForge(call, "GET", path)) as ProtectionAnswer).block_on_outdated_branch;
  } catch (error) {
    if (error instanceof ForgeRefusal && !error.isPassing) return undefined;
    throw error;
  }
}

interface BranchInfo {
  readonly ref: string;
  readonly sha: string;
  readonly repo_id: number;
  readonly repo: object | null;
}

interface PullAnswer {
  readonly number: number;
  readonly html_url: string;
  readonly title: string;
  readonly body: string;
  readonly state: string;
  readonly merged: boolean;
  readonly draft: boolean;
  readonly mergeable: boolean;
  readonly merge_commit_sha?: string | null;
  readonly user: GitHubUser | null;
  readonly labels: readonly { readonly name: string }[] | null;
  readonly head: BranchInfo;
  readonly base: BranchInfo;
}

interface StatusAnswer {
  readonly context: string;
  readonly status: string;
  readonly target_url: string | null;
}

interface BranchAnswer {
  readonly enable_status_check: boolean;
  readonly status_check_contexts: readonly string[] | null;
  readonly effective_branch_protection_name?: string;
}

interface ProtectionAnswer {
  readonly block_on_outdated_branch: boolean;
}
