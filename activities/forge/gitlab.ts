/** GitLab: a pull request is a merge request there. Source: docs.gitlab.com/api/merge_requests. */
import { askForge, type ForgeCall } from "./calls.ts";
import { requireList, requirePullRequest, type Forge, type KnownPullRequest } from "./forge.ts";

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
};

function read(call: ForgeCall, value: unknown): KnownPullRequest {
  const { web_url: url, iid: number } = { ...(value as Partial<Answer> | null) };
  const answer = requirePullRequest(call, value as Answer, { url, number });
  const { state, description, target_branch: into, sha: commit } = answer;
  return {
    url: answer.web_url,
    number: answer.iid,
    state: state === "merged" || state === "closed" ? state : "open",
    text: description ?? "",
    into,
    commit,
  };
}

function isFromHere({ source_branch: source, ...from }: Answer, branch: string): boolean {
  if (source !== undefined && source !== branch) return false;
  return from.source_project_id === from.target_project_id;
}
