/** Facts of a merge request on GitLab. Source: docs.gitlab.com/api/merge_requests, /api/jobs, /api/discussions and /api/members. */
import { askForge, askPages, ForgeRefusal, type ForgeCall } from "./calls.ts";
import {
  checkState,
  type CheckFacts,
  type ForgeUser,
  type PullRequestFacts,
  type ThreadFacts,
} from "./facts.ts";
import { requirePullRequest } from "./forge.ts";

/** From this on, a member may push. Source: docs.gitlab.com/api/access_requests, Developer. */
const DEVELOPER = 30;

const project = ({ forge }: ForgeCall) => `/projects/${encodeURIComponent(forge.project)}`;

/** Besides the facts, the pipeline whose jobs are the checks. */
interface MergeRequestFacts extends PullRequestFacts {
  /** Undefined if there is none of this head. */
  readonly pipeline: number | undefined;
}

/** @throws ForgeRefusal */
export async function gitlabPullRequest(call: ForgeCall, number: number): Promise<MergeRequestFacts> {
  const value = await askForge(call, "GET", `${project(call)}/merge_requests/${number}`);
  const { web_url: url, iid } = { ...(value as Partial<RequestAnswer> | null) };
  const answer = requirePullRequest(call, value as RequestAnswer, { url, number: iid });
  return {
    number: answer.iid,
    url: answer.web_url,
    title: answer.title,
    text: answer.description ?? "",
    // `locked`: it is being merged.
    state: answer.state === "merged" || answer.state === "closed" ? answer.state : "open",
    isDraft: answer.draft === true,
    author: userOf(answer.author),
    labels: answer.labels ?? [],
    head: {
      branch: answer.source_branch,
      commit: answer.sha,
      isHere:
        answer.source_project_id === null ? undefined : answer.source_project_id === answer.target_project_id,
    },
    base: { branch: answer.target_branch, commit: undefined },
    merge: mergeOf(answer),
    pipeline: pipelineOf(answer),
  };
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

/** The newest attempt of each job. A job that may fail is not required. @throws ForgeRefusal */
export async function gitlabChecks(
  call: ForgeCall,
  { pipeline }: Pick<MergeRequestFacts, "pipeline">,
): Promise<readonly CheckFacts[]> {
  if (pipeline === undefined) return [];
  const jobs = (await askPages(call, `${project(call)}/pipelines/${pipeline}/jobs`)) as readonly JobAnswer[];
  return jobs.map(({ id, name, status, allow_failure: mayFail, web_url: url }) => ({
    name,
    state: checkState(status),
    isRequired: !mayFail,
    url,
    job: String(id),
  }));
}

/** Discussions that can be resolved, with what people wrote in them. @throws ForgeRefusal */
export async function gitlabThreads(call: ForgeCall, number: number): Promise<readonly ThreadFacts[]> {
  const path = `${project(call)}/merge_requests/${number}/discussions`;
  const rows = (await askPages(call, path)) as readonly DiscussionAnswer[];
  return rows.flatMap(({ id, notes }) => {
    const written = notes.filter(({ system }) => system !== true);
    const [first] = written;
    if (first === undefined || !written.some(({ resolvable }) => resolvable)) return [];
    return [
      {
        id,
        path: first.position?.new_path ?? "",
        line: first.position?.new_line ?? undefined,
        isResolved: written.every(({ resolvable, resolved }) => !resolvable || resolved === true),
        comments: written.map(({ id: note, author, body, updated_at: changedAt }) => ({
          id: note,
          author: userOf(author),
          text: body,
          changedAt,
        })),
      },
    ];
  });
}

/** Whether a person may push, also by a group. @throws ForgeRefusal, unless there is no such member */
export async function gitlabMayWrite(call: ForgeCall, { id }: Pick<ForgeUser, "id">): Promise<boolean> {
  try {
    const { access_level: level, state } = (await askForge(
      call,
      "GET",
      `${project(call)}/members/all/${id}`,
    )) as MemberAnswer;
    return level >= DEVELOPER && state === "active";
  } catch (error) {
    if (error instanceof ForgeRefusal && error.status === 404) return false;
    throw error;
  }
}

const userOf = (user: UserAnswer | null | undefined): ForgeUser | undefined =>
  user === null || user === undefined ? undefined : { id: user.id, login: user.username };

interface UserAnswer {
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
  readonly author: UserAnswer | null;
  readonly labels?: readonly string[];
  readonly source_branch: string;
  readonly source_project_id: number | null;
  readonly target_branch: string;
  readonly target_project_id: number;
  readonly sha: string;
  readonly has_conflicts?: boolean;
  readonly detailed_merge_status?: string;
  readonly head_pipeline?: { readonly id: number; readonly sha: string; readonly source?: string } | null;
}

interface JobAnswer {
  readonly id: number;
  readonly name: string;
  readonly status: string;
  readonly allow_failure: boolean;
  readonly web_url: string;
}

interface DiscussionAnswer {
  readonly id: string;
  readonly notes: readonly {
    readonly id: number;
    readonly author: UserAnswer | null;
    readonly body: string;
    readonly system?: boolean;
    readonly resolvable: boolean;
    readonly resolved?: boolean;
    readonly updated_at: string;
    readonly position?: { readonly new_path: string; readonly new_line: number | null };
  }[];
}

interface MemberAnswer {
  readonly access_level: number;
  readonly state: string;
}
