/** Facts of a merge request on GitLab. Source: docs.gitlab.com/api/merge_requests, /api/jobs, /api/discussions and /api/members. */
import { askForge, askPages, ForgeRefusal, type ForgeCall } from "./calls.ts";
import {
  checkState,
  newestResults,
  type CheckFacts,
  type ForgeUser,
  type PullRequestFacts,
} from "./facts.ts";
import { requireList, requirePullRequest } from "./forge.ts";

/** From this on, a member may push. Source: docs.gitlab.com/api/access_requests, Developer. */
const DEVELOPER = 30;

/** Its path in the API. */
export const gitlabProject = ({ forge }: ForgeCall) => `/projects/${encodeURIComponent(forge.project)}`;

async function requestOf(call: ForgeCall, number: number): Promise<RequestAnswer> {
  const value = await askForge(call, "GET", `${gitlabProject(call)}/merge_requests/${number}`);
  const { web_url: url, iid } = { ...(value as Partial<RequestAnswer> | null) };
  return requirePullRequest(call, value as RequestAnswer, { url, number: iid });
}

/** @throws ForgeRefusal */
export async function gitlabPullRequest(call: ForgeCall, number: number): Promise<PullRequestFacts> {
  const answer = await requestOf(call, number);
  return {
    number: answer.iid,
    repositoryId: String(answer.target_project_id),
    url: answer.web_url,
    title: answer.title,
    text: answer.description ?? "",
    // `locked`: it is being merged.
    state: answer.state === "merged" || answer.state === "closed" ? answer.state : "open",
    isDraft: answer.draft === true,
    author: gitlabUser(answer.author),
    labels: answer.labels ?? [],
    head: {
      branch: answer.source_branch,
      commit: answer.sha,
      isHere:
        answer.source_project_id === null ? undefined : answer.source_project_id === answer.target_project_id,
    },
    base: { branch: answer.target_branch, commit: undefined },
    merge: mergeOf(answer),
    isQueued: answer.state === "opened" ? await isOnTrain(call, answer) : false,
    mergeCommit: answer.state === "merged" ? mergeCommitOf(answer) : undefined,
  };
}

/** What a merge without a commit of its own leaves is the head itself. */
const mergeCommitOf = ({ merge_commit_sha: merge, squash_commit_sha: squash, sha }: RequestAnswer) =>
  merge ?? squash ?? sha;

/** On a merge train, a request is set to be merged by itself; without that, nothing is asked. */
async function isOnTrain(call: ForgeCall, answer: RequestAnswer): Promise<boolean | undefined> {
  if (answer.merge_when_pipeline_succeeds !== true) return false;
  try {
    const path = `${gitlabProject(call)}/merge_trains/merge_requests/${answer.iid}`;
    const { status } = (await askForge(call, "GET", path)) as TrainAnswer;
    return !/^(merged|skip_merged)$/.test(status);
  } catch (error) {
    // On none; or the server has no trains.
    if (error instanceof ForgeRefusal && error.status === 404) return false;
    if (error instanceof ForgeRefusal && !error.isPassing) return undefined;
    throw error;
  }
}

/** States in which it is not computed. The list is not closed: any other word is about rules, not about the change. */
const UNKNOWN = /^(checking|unchecked|preparing|cannot_be_merged_recheck)$/;

function mergeOf(answer: RequestAnswer): PullRequestFacts["merge"] {
  if (UNKNOWN.test(answer.detailed_merge_status ?? "unchecked")) return "unknown";
  if (answer.has_conflicts === undefined) return "unknown";
  return answer.has_conflicts ? "conflict" : "clean";
}

/** Of this head, or of what a merge of it would give, which has a commit of its own. */
function pipelineOf({ head_pipeline: pipeline, sha }: RequestAnswer): number | undefined {
  if (pipeline === null || pipeline === undefined) return undefined;
  return pipeline.sha === sha || pipeline.source === "merge_request_event" ? pipeline.id : undefined;
}

/** The newest attempt of each job of the head's pipeline. A job that may fail is not required. @throws ForgeRefusal */
export async function gitlabChecks(
  call: ForgeCall,
  { number }: Pick<PullRequestFacts, "number">,
): Promise<readonly CheckFacts[]> {
  const pipeline = pipelineOf(await requestOf(call, number));
  return pipeline === undefined ? [] : await jobsOf(call, pipeline);
}

async function jobsOf(call: ForgeCall, pipeline: number): Promise<readonly CheckFacts[]> {
  const jobs = (await askPages(
    call,
    `${gitlabProject(call)}/pipelines/${pipeline}/jobs`,
  )) as readonly JobAnswer[];
  return jobs.map(({ id, name, status, allow_failure: mayFail, web_url: url }) => ({
    name,
    state: checkState(status),
    isRequired: !mayFail,
    url,
    job: String(id),
  }));
}

/** Chosen: of the base's newest three pipelines, one has mostly ended. */
const BASE_PIPELINES = 3;

/** @throws ForgeRefusal */
export async function gitlabBaseChecks(
  call: ForgeCall,
  { base }: Pick<PullRequestFacts, "base">,
  names: readonly string[],
): Promise<readonly CheckFacts[]> {
  if (names.length === 0) return [];
  const query = new URLSearchParams({ ref: base.branch, per_page: String(BASE_PIPELINES) }).toString();
  const path = `${gitlabProject(call)}/pipelines?${query}`;
  const pipelines = requireList(call, await askForge(call, "GET", path)) as readonly {
    readonly id: number;
  }[];
  const results: (readonly CheckFacts[])[] = [];
  for (const { id } of pipelines) {
    results.push(await jobsOf(call, id));
    if (newestResults(names, results).length === names.length) break;
  }
  return newestResults(names, results);
}

/** A project that merges only what can be fast-forwarded, with or without a commit for the merge. @throws ForgeRefusal */
export async function gitlabDemandsNewestBase(call: ForgeCall): Promise<boolean | undefined> {
  const { merge_method: method } = (await askForge(call, "GET", gitlabProject(call))) as ProjectAnswer;
  return method === undefined ? undefined : method !== "merge";
}

/** Whether a person may push, also by a group. @throws ForgeRefusal, unless there is no such member */
export async function gitlabMayWrite(call: ForgeCall, { id }: Pick<ForgeUser, "id">): Promise<boolean> {
  try {
    const { access_level: level, state } = (await askForge(
      call,
      "GET",
      `${gitlabProject(call)}/members/all/${id}`,
    )) as MemberAnswer;
    return level >= DEVELOPER && state === "active";
  } catch (error) {
    if (error instanceof ForgeRefusal && error.status === 404) return false;
    throw error;
  }
}

export const gitlabUser = (user: GitLabUser | null | undefined): ForgeUser | undefined =>
  user === null || user === undefined ? undefined : { id: user.id, login: user.username };

export interface GitLabUser {
  readonly id: number;
  readonly username: string;
}

interface RequestAnswer {
  readonly iid: number;
  readonly web_url: string;
  readonly title: string;
  readonly description: string | null;
  readonly state: string;
  readonly draft?: boolean;
  readonly author: GitLabUser | null;
  readonly labels?: readonly string[];
  readonly source_branch: string;
  readonly source_project_id: number | null;
  readonly target_branch: string;
  readonly target_project_id: number;
  readonly sha: string;
  readonly has_conflicts?: boolean;
  readonly detailed_merge_status?: string;
  readonly merge_when_pipeline_succeeds?: boolean;
  readonly merge_commit_sha?: string | null;
  readonly squash_commit_sha?: string | null;
  readonly head_pipeline?: { readonly id: number; readonly sha: string; readonly source?: string } | null;
}

interface JobAnswer {
  readonly id: number;
  readonly name: string;
  readonly status: string;
  readonly allow_failure: boolean;
  readonly web_url: string;
}

interface TrainAnswer {
  readonly status: string;
}

interface ProjectAnswer {
  readonly merge_method?: string;
}

interface MemberAnswer {
  readonly access_level: number;
  readonly state: string;
}
