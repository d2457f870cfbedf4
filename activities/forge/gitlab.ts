/** GitLab: a pull request is a merge request there. Source: docs.gitlab.com/api/merge_requests. */
import { askForge, type ForgeCall } from "./calls.ts";
import type { CheckFacts, CheckLog } from "./facts.ts";
import {
  projectById,
  requireList,
  requirePullRequest,
  whyNot,
  type Did,
  type Forge,
  type KnownPullRequest,
} from "./forge.ts";
import {
  gitlabBaseChecks,
  gitlabChecks,
  gitlabDemandsNewestBase,
  gitlabMayWrite,
  gitlabProject,
  gitlabPullRequest,
  gitlabUser,
  type GitLabUser,
} from "./gitlab-facts.ts";
import {
  gitlabAskByName,
  gitlabAskForReview,
  gitlabAssign,
  gitlabLabel,
  gitlabComment,
  gitlabConversation,
  gitlabMakeReady,
  gitlabReply,
  gitlabResolve,
  gitlabReviews,
  gitlabThreads,
} from "./gitlab-talk.ts";
import { gitlabReview } from "./gitlab-review.ts";
import { askLog } from "./log-text.ts";

interface Answer {
  readonly web_url: string;
  readonly iid: number;
  readonly state: string;
  readonly description?: string | null;
  readonly target_branch?: string;
  readonly source_branch?: string;
  readonly source_project_id?: number;
  readonly target_project_id?: number;
  readonly sha?: string;
  readonly draft?: boolean;
}

const repositoryPath = (project: string) => `/projects/${encodeURIComponent(project)}`;
const requests = ({ forge }: ForgeCall) => `${repositoryPath(forge.project)}/merge_requests`;

export const gitlab: Forge = {
  async pullRequestsFrom(call, branch) {
    const query = new URLSearchParams({ state: "all", source_branch: branch }).toString();
    const list = requireList(call, await askForge(call, "GET", `${requests(call)}?${query}`));
    return list.flatMap((one) => {
      const known = read(call, one);
      return isFromHere(one as Answer, branch) ? [known] : [];
    });
  },
  async createPullRequest(call, { branch, into, title, text, draft }) {
    const fields = {
      source_branch: branch,
      target_branch: into,
      // The title marks a draft.
      title: draft ? `Draft: ${title}` : title,
      description: text,
    };
    return read(call, await askForge(call, "POST", requests(call), fields));
  },
  async writeText(call, number, text) {
    await askForge(call, "PUT", `${requests(call)}/${number}`, { description: text });
  },
  repositoryPath,
  whoAmI: async (call) => gitlabUser((await askForge(call, "GET", "/user")) as GitLabUser),
  projectOf: (call, id) => projectById(call, repositoryPath(id)),
  readPullRequest: gitlabPullRequest,
  readChecks: gitlabChecks,
  readBaseChecks: gitlabBaseChecks,
  readThreads: gitlabThreads,
  readReviews: gitlabReviews,
  readConversation: gitlabConversation,
  mayWrite: gitlabMayWrite,
  demandsNewestBase: gitlabDemandsNewestBase,
  readLog: gitlabLog,
  writeComment: gitlabComment,
  replyToThread: gitlabReply,
  resolveThread: gitlabResolve,
  writeReview: gitlabReview,
  makeReady: gitlabMakeReady,
  rerunCheck: gitlabRerun,
  askForReview: gitlabAskForReview,
  askByName: gitlabAskByName,
  addLabel: gitlabLabel,
  assign: gitlabAssign,
};

/** The trace has its sections in it; GitLab keeps no annotations. @throws ForgeRefusal if it may pass */
async function gitlabLog(call: ForgeCall, { job }: CheckFacts): Promise<CheckLog | undefined> {
  if (job === undefined) return undefined;
  const log = await askLog(call, `${gitlabProject(call)}/jobs/${job}/trace`);
  return log && { ...log, steps: undefined, annotations: [], summary: undefined };
}

/** @throws ForgeRefusal if it may pass */
async function gitlabRerun(call: ForgeCall, { name, job }: CheckFacts): Promise<Did> {
  if (job === undefined) return { done: false, why: `"${name}" is no job of GitLab.` };
  try {
    await askForge(call, "POST", `${gitlabProject(call)}/jobs/${job}/retry`);
    return { done: true };
  } catch (error) {
    return whyNot(error);
  }
}

function read(call: ForgeCall, value: unknown): KnownPullRequest {
  const { web_url: url, iid: number } = { ...(value as Partial<Answer> | null) };
  const answer = requirePullRequest(call, value as Answer, { url, number });
  const { state, description, target_branch: into, sha: commit, draft: isDraft } = answer;
  return {
    url: answer.web_url,
    number: answer.iid,
    state: state === "merged" || state === "closed" ? state : "open",
    text: description ?? "",
    into,
    isDraft,
    commit,
  };
}

function isFromHere({ source_branch: source, ...from }: Answer, branch: string): boolean {
  if (source !== undefined && source !== branch) return false;
  return from.source_project_id === from.target_project_id;
}
