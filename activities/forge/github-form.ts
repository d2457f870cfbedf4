/**
 * What Gitea and Forgejo answer in GitHub's form: pull requests, people, comments of a conversation. Source:
 * docs.github.com/rest/pulls/pulls and /rest/issues/comments.
 */
import { askForge, askPages, type ForgeCall } from "./calls.ts";
import { checkState, type CommentFacts, type ForgeUser, type StepFacts } from "./facts.ts";
import { did, requireId, requirePullRequest, whyNot, type Did, type KnownPullRequest } from "./forge.ts";

interface Answer {
  readonly html_url: string;
  readonly number: number;
  readonly state: string;
  readonly merged_at?: string | null;
  readonly body?: string | null;
  readonly draft?: boolean;
  readonly base?: { readonly ref: string; readonly repo?: { readonly full_name: string } | null };
  readonly head?: {
    readonly sha: string;
    readonly ref?: string;
    readonly repo?: { readonly full_name: string } | null;
  };
}

/** @throws ForgeRefusal if it is no pull request */
export function readGitHubForm(
  call: ForgeCall,
  value: unknown,
): KnownPullRequest & { readonly isHere: IsHere } {
  const { html_url: url, number } = { ...(value as Partial<Answer> | null) };
  const { state, merged_at, body, base, head, draft } = requirePullRequest(call, value as Answer, {
    url,
    number,
  });
  return {
    url: url ?? "",
    number: number ?? 0,
    state: stateOf(state, merged_at),
    text: body ?? "",
    into: base?.ref,
    isDraft: draft,
    commit: head?.sha,
    isHere: (branch) => {
      if (head?.ref !== undefined && head.ref !== branch) return false;
      // Its fork was deleted.
      return head?.repo !== null && head?.repo?.full_name === base?.repo?.full_name;
    },
  };
}

/** Whether it is from this branch of this repository: a forge that does not know a filter lists all. */
type IsHere = (branch: string) => boolean;

function stateOf(state: string, merged: string | null | undefined): KnownPullRequest["state"] {
  if (state === "open") return "open";
  return typeof merged === "string" ? "merged" : "closed";
}

/** Nothing else of the many things that are said about a person. */
export interface GitHubUser {
  readonly id: number;
  readonly login: string;
  readonly type?: string;
}

/** Somebody whose account is gone is null; on Gitea, they have the id -1. */
export const toUser = (user: GitHubUser | null | undefined): ForgeUser | undefined =>
  user !== null && user !== undefined && user.id > 0
    ? { id: user.id, login: user.login, isBot: user.type === "Bot" ? true : undefined }
    : undefined;

export interface GitHubComment {
  readonly id: number;
  readonly user: GitHubUser | null;
  readonly body: string | null;
  readonly updated_at: string;
}

export const toComment = ({ id, user, body, updated_at: changedAt }: GitHubComment): CommentFacts => ({
  id,
  author: toUser(user),
  text: body ?? "",
  changedAt,
});

const issues = ({ forge }: ForgeCall) => `/repos/${forge.project}/issues`;

/** GitHub fills its pages; Gitea gives the whole list at once, whatever page is asked for. */
export async function readIssueComments(
  call: ForgeCall,
  number: number,
  since: Date | undefined,
): Promise<readonly CommentFacts[]> {
  const query = since === undefined ? "" : `?since=${encodeURIComponent(since.toISOString())}`;
  const path = `${issues(call)}/${number}/comments${query}`;
  const rows = call.forge.kind === "github" ? await askPages(call, path) : await askForge(call, "GET", path);
  return (rows as readonly GitHubComment[]).map(toComment);
}

export async function writeIssueComment(call: ForgeCall, number: number, text: string): Promise<number> {
  return requireId(call, await askForge(call, "POST", `${issues(call)}/${number}/comments`, { body: text }));
}

/** @param pull its path. @throws ForgeRefusal if it may pass */
export async function askGitHubForReview(call: ForgeCall, pull: string, { login }: ForgeUser): Promise<Did> {
  try {
    await askForge(call, "POST", `${pull}/requested_reviewers`, { reviewers: [login] });
    return { done: true };
  } catch (error) {
    return whyNot(error);
  }
}

/** @param pull its path; `name` is a login, or `organisation/team` */
export function askGitHubByName(call: ForgeCall, pull: string, name: string): Promise<Did> {
  const [, team] = name.split("/");
  const fields = team === undefined ? { reviewers: [name] } : { team_reviewers: [team] };
  return did(async () => void (await askForge(call, "POST", `${pull}/requested_reviewers`, fields)));
}

/** GitHub makes a label that it is given, and passes over whom it may not assign: so both are asked about before. */
export const labelOnGitHub = (call: ForgeCall, number: number, label: string): Promise<Did> =>
  did(async () => {
    await askForge(call, "GET", `/repos/${call.forge.project}/labels/${encodeURIComponent(label)}`);
    await askForge(call, "POST", `${issues(call)}/${number}/labels`, { labels: [label] });
    return undefined;
  });

export const assignOnGitHub = (call: ForgeCall, number: number, login: string): Promise<Did> =>
  did(async () => {
    const answer = await askForge(call, "POST", `${issues(call)}/${number}/assignees`, {
      assignees: [login],
    });
    const { assignees } = answer as { readonly assignees?: readonly GitHubUser[] };
    const isTaken = assignees?.some((one) => one.login.toLowerCase() === login.toLowerCase()) === true;
    return isTaken ? undefined : { done: false, why: `${login} may not be assigned in this repository` };
  });

/** A step of a job of Actions, which Gitea answers in the same form. */
export interface StepAnswer {
  readonly name: string;
  readonly status: string;
  readonly conclusion?: string | null;
  readonly started_at?: string | null;
  readonly completed_at?: string | null;
}

export const toStep = ({
  name,
  status,
  conclusion,
  started_at: from,
  completed_at: to,
}: StepAnswer): StepFacts => ({
  name,
  state: status === "completed" ? checkState(conclusion) : "running",
  startedAt: from ?? undefined,
  endedAt: to ?? undefined,
});
