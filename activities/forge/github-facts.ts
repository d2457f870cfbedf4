/**
 * Facts of a pull request on GitHub, by its REST API of version 2022-11-28. Source: docs.github.com/rest. Whether a thread is resolved
 * is only in its other API (GraphQL), so it is not known here.
 */
import { askForge, askPages, ForgeRefusal, type ForgeCall } from "./calls.ts";
import {
  checkState,
  withRequired,
  type CheckFacts,
  type ForgeUser,
  type PullRequestFacts,
  type ReviewFacts,
  type ThreadFacts,
} from "./facts.ts";
import { requirePullRequest } from "./forge.ts";

const repository = ({ forge }: ForgeCall) => `/repos/${forge.project}`;

/** @throws ForgeRefusal */
export async function githubPullRequest(call: ForgeCall, number: number): Promise<PullRequestFacts> {
  const value = await askForge(call, "GET", `${repository(call)}/pulls/${number}`);
  const { html_url: url, number: index } = { ...(value as Partial<PullAnswer> | null) };
  const { title, body, state, merged, draft, user, labels, head, base, mergeable } = requirePullRequest(
    call,
    value as PullAnswer,
    { url, number: index },
  );
  const open = state === "open" ? "open" : "closed";
  return {
    number,
    url: url ?? "",
    title,
    text: body ?? "",
    state: merged ? "merged" : open,
    isDraft: draft === true,
    author: userOf(user),
    labels: labels.map(({ name }) => name),
    head: {
      branch: head.ref,
      commit: head.sha,
      isHere: head.repo === null ? undefined : head.repo.full_name === base.repo.full_name,
    },
    base: { branch: base.ref, commit: base.sha },
    merge: mergeOf(mergeable),
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

/** Reviews that were sent, the oldest first, and the comments on places of the change. @throws ForgeRefusal */
export async function githubReviews(
  call: ForgeCall,
  number: number,
): Promise<{ readonly reviews: readonly ReviewFacts[]; readonly threads: readonly ThreadFacts[] }> {
  const pull = `${repository(call)}/pulls/${number}`;
  const rows = (await askPages(call, `${pull}/reviews`)) as readonly ReviewAnswer[];
  const comments = (await askPages(call, `${pull}/comments`)) as readonly CommentAnswer[];
  const reviews = rows.flatMap(({ id, user, state, body, commit_id: commit }) => {
    const verdict = VERDICTS.get(state);
    const facts = { id, author: userOf(user), text: body, commit: commit ?? undefined };
    return verdict === undefined ? [] : [{ ...facts, verdict }];
  });
  // An answer names the thread's first comment.
  const byFirst = Map.groupBy(comments, ({ id, in_reply_to_id: first }) => first ?? id);
  const threads = [...byFirst].map(([first, ofThread]) => {
    const inOrder = ofThread.toSorted((one, other) => one.id - other.id);
    const [head] = inOrder;
    return {
      id: String(first),
      path: head?.path ?? "",
      line: head?.line ?? head?.original_line ?? undefined,
      isResolved: undefined,
      comments: inOrder.map(({ id, user, body, updated_at: changedAt }) => ({
        id,
        author: userOf(user),
        text: body,
        changedAt,
      })),
    };
  });
  return { reviews, threads };
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

/** Nothing else of the many things that are said about a person. */
const userOf = (user: ForgeUser | null): ForgeUser | undefined =>
  user === null ? undefined : { id: user.id, login: user.login };

interface PullAnswer {
  readonly number: number;
  readonly html_url: string;
  readonly title: string;
  readonly body: string | null;
  readonly state: string;
  readonly merged: boolean;
  readonly draft?: boolean;
  readonly mergeable: boolean | null;
  readonly user: ForgeUser | null;
  readonly labels: readonly { readonly name: string }[];
  readonly head: {
    readonly ref: string;
    readonly sha: string;
    readonly repo: { readonly full_name: string } | null;
  };
  readonly base: {
    readonly ref: string;
    readonly sha: string;
    readonly repo: { readonly full_name: string };
  };
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
  readonly parameters?: { readonly required_status_checks?: readonly { readonly context: string }[] };
}

interface BranchAnswer {
  readonly protection?: { readonly required_status_checks?: { readonly contexts?: readonly string[] } };
}

interface ReviewAnswer {
  readonly id: number;
  readonly user: ForgeUser | null;
  readonly state: string;
  readonly body: string;
  readonly commit_id: string | null;
}

interface CommentAnswer {
  readonly id: number;
  readonly in_reply_to_id?: number;
  readonly user: ForgeUser | null;
  readonly body: string;
  readonly path: string;
  readonly line?: number | null;
  readonly original_line?: number;
  readonly updated_at: string;
}

interface PermissionAnswer {
  readonly permission: string;
  readonly user: { readonly id: number } | null;
}
