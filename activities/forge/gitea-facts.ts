/**
 * Facts of a pull request on Gitea and Forgejo. Source: the description that each server has at /swagger.v1.json; measured with Gitea
 * 1.24.6 (test/forge). There is no ETag and no call that resolves or answers a thread.
 */
import { askForge, type ForgeCall } from "./calls.ts";
import {
  checkState,
  withRequired,
  type CheckFacts,
  type ForgeUser,
  type PullRequestFacts,
  type ReviewFacts,
  type ThreadFacts,
} from "./facts.ts";
import { requireList, requirePullRequest } from "./forge.ts";

const PAGE_SIZE = 50;
/** Chosen: 1,000 statuses, reviews or comments are read. */
const MAX_PAGES = 20;

const repository = ({ forge }: ForgeCall) => `/repos/${forge.project}`;

/** @throws ForgeRefusal */
export async function giteaPullRequest(call: ForgeCall, number: number): Promise<PullRequestFacts> {
  const value = await askForge(call, "GET", `${repository(call)}/pulls/${number}`);
  const { html_url: url, number: index } = { ...(value as Partial<PullAnswer> | null) };
  const answer = requirePullRequest(call, value as PullAnswer, { url, number: index });
  const { head, base } = answer;
  return {
    number: answer.number,
    url: answer.html_url,
    title: answer.title,
    text: answer.body,
    state: stateOf(answer),
    isDraft: answer.draft,
    author: userOf(answer.user),
    labels: (answer.labels ?? []).map(({ name }) => name),
    head: {
      branch: head.ref,
      commit: head.sha,
      isHere: head.repo === null ? undefined : head.repo_id === base.repo_id,
    },
    base: { branch: base.ref, commit: base.sha },
    // False while it is computed, for a conflict, for an error and for a draft alike.
    merge: answer.mergeable ? "clean" : "unknown",
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
  const path = `${repository(call)}/commits/${head.commit}/status`;
  const statuses: StatusAnswer[] = [];
  for (let page = 1; page <= MAX_PAGES; page += 1) {
    const answer = (await askForge(call, "GET", `${path}?limit=${PAGE_SIZE}&page=${page}`)) as {
      readonly statuses?: readonly StatusAnswer[] | null;
    };
    const more = answer.statuses ?? [];
    statuses.push(...more);
    if (more.length === 0) break;
  }
  const branch = (await askForge(
    call,
    "GET",
    `${repository(call)}/branches/${encodeURIComponent(base.branch)}`,
  )) as BranchAnswer;
  const required = branch.enable_status_check ? (branch.status_check_contexts ?? []) : [];
  const checks = statuses.map(({ context, status, target_url: target }) => ({
    name: context,
    state: checkState(status),
    // Of Actions it is a path, and keeps the repository's former name.
    url: URL.parse(target ?? "", call.forge.api)?.href,
    job: undefined,
  }));
  return withRequired(checks, required);
}

/** Reviews that were sent, the oldest first, and the comments on places of the change. @throws ForgeRefusal */
export async function giteaReviews(
  call: ForgeCall,
  number: number,
): Promise<{ readonly reviews: readonly ReviewFacts[]; readonly threads: readonly ThreadFacts[] }> {
  const path = `${repository(call)}/pulls/${number}/reviews`;
  const rows = (await listAll(call, path)) as readonly ReviewAnswer[];
  // One that is still written, and the mere wish for one, are none.
  const sent = rows.filter(({ state }) => VERDICTS.has(state));
  const comments: CommentAnswer[] = [];
  for (const { id, comments_count: count } of sent)
    if (count !== 0)
      comments.push(
        ...(requireList(call, await askForge(call, "GET", `${path}/${id}/comments`)) as CommentAnswer[]),
      );
  const reviews = sent.map(({ id, user, state, body, commit_id: commit }) => ({
    id,
    author: userOf(user),
    verdict: VERDICTS.get(state) ?? "commented",
    text: body,
    commit: commit || undefined,
  }));
  return { reviews, threads: threadsOf(comments) };
}

const VERDICTS: ReadonlyMap<string, ReviewFacts["verdict"]> = new Map([
  ["APPROVED", "approved"],
  ["REQUEST_CHANGES", "changes-requested"],
  ["COMMENT", "commented"],
]);

/** The server shows comments on one place together, so an answer is one more comment there. */
function threadsOf(comments: readonly CommentAnswer[]): readonly ThreadFacts[] {
  const commentsByPlace = Map.groupBy(
    comments,
    ({ path, position, original_position: before }) => `${path}:${position || `-${before}`}`,
  );
  return [...commentsByPlace].map(([id, rows]) => {
    const inOrder = rows.toSorted((one, other) => one.id - other.id);
    const [first] = inOrder;
    return {
      id,
      path: first?.path ?? "",
      // 0 if the place is on the side before the change.
      line: first?.position || undefined,
      isResolved: inOrder.some(({ resolver }) => resolver !== null && resolver !== undefined),
      comments: inOrder.map(({ id: comment, user, body, updated_at: changedAt }) => ({
        id: comment,
        author: userOf(user),
        text: body,
        changedAt,
      })),
    };
  });
}

/**
 * Whether a person may write to the repository: everyone to whom work can be assigned may. What others may is told only to
 * administrators (403), so this asks for no single person.
 * @throws ForgeRefusal
 */
export async function giteaMayWrite(call: ForgeCall, user: Pick<ForgeUser, "id">): Promise<boolean> {
  const people = (await listAll(call, `${repository(call)}/assignees`, false)) as readonly UserAnswer[];
  return people.some(({ id }) => id === user.id);
}

async function listAll(call: ForgeCall, path: string, inPages = true): Promise<readonly unknown[]> {
  if (!inPages) return requireList(call, await askForge(call, "GET", path));
  const all: unknown[] = [];
  for (let page = 1; page <= MAX_PAGES; page += 1) {
    const rows = requireList(call, await askForge(call, "GET", `${path}?limit=${PAGE_SIZE}&page=${page}`));
    all.push(...rows);
    if (rows.length === 0) break;
  }
  return all;
}

/** Somebody whose account is gone has the id -1. */
const userOf = (user: UserAnswer | null | undefined): ForgeUser | undefined =>
  user !== null && user !== undefined && user.id > 0 ? { id: user.id, login: user.login } : undefined;

interface UserAnswer {
  readonly id: number;
  readonly login: string;
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
  readonly user: UserAnswer | null;
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
}

interface ReviewAnswer {
  readonly id: number;
  readonly user: UserAnswer | null;
  readonly state: string;
  readonly body: string;
  readonly commit_id: string;
  readonly comments_count: number;
}

interface CommentAnswer {
  readonly id: number;
  readonly user: UserAnswer | null;
  readonly body: string;
  readonly path: string;
  readonly position: number;
  readonly original_position: number;
  readonly updated_at: string;
  readonly resolver?: UserAnswer | null;
}
