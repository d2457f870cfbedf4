/** GitHub, and GitHub Enterprise. Source: docs.github.com/rest, version 2022-11-28. */
import { askForge, type ForgeCall } from "./calls.ts";
import {
  projectById,
  requireId,
  requireList,
  type Forge,
  type ReviewComment,
  type ReviewOrder,
} from "./forge.ts";
import {
  githubChecks,
  githubDemandsNewestBase,
  githubMayWrite,
  githubPullRequest,
  githubReviews,
} from "./github-facts.ts";
import {
  askGitHubByName,
  askGitHubForReview,
  assignOnGitHub,
  labelOnGitHub,
  readIssueComments,
  readGitHubForm,
  writeIssueComment,
} from "./github-form.ts";
import { githubLog, githubRerun } from "./github-logs.ts";
import { githubBaseChecks, githubViewer } from "./github-graphql.ts";
import { githubMakeReady, githubReply, githubResolve, githubThreads } from "./github-threads.ts";

const EVENTS = { comment: "COMMENT", approve: "APPROVE", "request-changes": "REQUEST_CHANGES" } as const;

/** What is unchanged is on the right. Source: docs.github.com/rest/pulls/reviews. */
const sideOf = ({ new: line }: ReviewComment["first"]) => (line === undefined ? "LEFT" : "RIGHT");

async function githubReview(
  call: ForgeCall,
  number: number,
  { commit, verdict, text, comments }: ReviewOrder,
): Promise<ReviewOrder["verdict"]> {
  const rows = comments.map(({ newPath: path, first, last, text: body }) => ({
    path,
    body,
    line: last.new ?? last.old,
    side: sideOf(last),
    ...(last === first || (last.new ?? last.old) === (first.new ?? first.old)
      ? {}
      : { start_line: first.new ?? first.old, start_side: sideOf(first) }),
  }));
  const fields = { commit_id: commit, body: text, event: EVENTS[verdict], comments: rows };
  requireId(call, await askForge(call, "POST", `${pulls(call)}/${number}/reviews`, fields));
  return verdict;
}

const pulls = ({ forge }: ForgeCall) => `/repos/${forge.project}/pulls`;

export const github: Forge = {
  async pullRequestsFrom(call, branch) {
    const [owner = ""] = call.forge.project.split("/");
    // A target would hide one whose target a person changed.
    const query = new URLSearchParams({ state: "all", head: `${owner}:${branch}` }).toString();
    const list = requireList(call, await askForge(call, "GET", `${pulls(call)}?${query}`));
    return list.map((one) => readGitHubForm(call, one)).filter(({ isHere }) => isHere(branch));
  },
  async createPullRequest(call, { branch, into, title, text, draft }) {
    const fields = { head: branch, base: into, title, draft, body: text };
    return readGitHubForm(call, await askForge(call, "POST", pulls(call), fields));
  },
  async writeText(call, number, text) {
    await askForge(call, "PATCH", `${pulls(call)}/${number}`, { body: text });
  },
  repositoryPath: (project) => `/repos/${project}`,
  whoAmI: githubViewer,
  projectOf: (call, id) => projectById(call, `/repositories/${encodeURIComponent(id)}`),
  readPullRequest: githubPullRequest,
  readChecks: githubChecks,
  readBaseChecks: githubBaseChecks,
  readThreads: githubThreads,
  readReviews: githubReviews,
  readConversation: readIssueComments,
  mayWrite: githubMayWrite,
  demandsNewestBase: githubDemandsNewestBase,
  readLog: githubLog,
  writeComment: writeIssueComment,
  replyToThread: (call, _number, thread, text) => githubReply(call, thread, text),
  resolveThread: (call, _number, thread) => githubResolve(call, thread),
  writeReview: githubReview,
  makeReady: githubMakeReady,
  rerunCheck: githubRerun,
  askForReview: (call, number, user) => askGitHubForReview(call, `${pulls(call)}/${number}`, user),
  askByName: (call, number, name) => askGitHubByName(call, `${pulls(call)}/${number}`, name),
  addLabel: labelOnGitHub,
  assign: assignOnGitHub,
};

/**
 * A token for one repository, for an hour.
 * @param call with the App's own signature. @throws ForgeRefusal
 */
export async function installationToken(
  call: ForgeCall,
): Promise<{ readonly value: string; readonly expiresAtMs: number }> {
  const { project } = call.forge;
  const { id } = (await askForge(call, "GET", `/repos/${project}/installation`)) as { id: number };
  const made = (await askForge(call, "POST", `/app/installations/${id}/access_tokens`, {
    repositories: [project.split("/")[1]],
  })) as { token: string; expires_at: string };
  return { value: made.token, expiresAtMs: Date.parse(made.expires_at) };
}
