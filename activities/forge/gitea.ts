/**
 * Gitea and Forgejo: GitHub's form, with gaps. Source: the description that each server has at /swagger.v1.json, and Gitea 1.24.6
 * itself (test/forge). It refuses a second pull request with the same target (409), but four at once were all made: only the run that
 * is in charge of a session may ask.
 */
import { askForge, type ForgeCall } from "./calls.ts";
import { did, projectById, requireList, type Did, type Forge, type KnownPullRequest } from "./forge.ts";
import { giteaLog, giteaRerun } from "./gitea-actions.ts";
import {
  giteaBaseChecks,
  giteaChecks,
  giteaDemandsNewestBase,
  giteaMayWrite,
  giteaPullRequest,
} from "./gitea-facts.ts";
import {
  giteaMakeReady,
  giteaReply,
  giteaResolve,
  giteaReview,
  giteaReviews,
  giteaThreads,
} from "./gitea-talk.ts";
import {
  askGitHubByName,
  askGitHubForReview,
  readIssueComments,
  readGitHubForm,
  toUser,
  writeIssueComment,
  type GitHubUser,
} from "./github-form.ts";

/** The most that a server lists at once, unless its operator changed that. */
const PAGE_SIZE = 50;
/** Of each state. Chosen: 1,000 open pull requests, and the same of newest ended ones, are looked through. */
const MAX_PAGES = 20;

const pulls = ({ forge }: ForgeCall) => `/repos/${forge.project}/pulls`;

export const gitea: Forge = {
  async pullRequestsFrom(call, branch) {
    const open = await listAll(call, "open", branch);
    return open.length > 0 ? open : listAll(call, "closed", branch);
  },
  async createPullRequest(call, { branch, into, title, text, draft }) {
    // The title marks a draft.
    const fields = { head: branch, base: into, title: draft ? `WIP: ${title}` : title, body: text };
    return readGitHubForm(call, await askForge(call, "POST", pulls(call), fields));
  },
  async writeText(call, number, text) {
    await askForge(call, "PATCH", `${pulls(call)}/${number}`, { body: text });
  },
  repositoryPath: (project) => `/repos/${project}`,
  whoAmI: async (call) => toUser((await askForge(call, "GET", "/user")) as GitHubUser),
  projectOf: (call, id) => projectById(call, `/repositories/${encodeURIComponent(id)}`),
  readPullRequest: giteaPullRequest,
  readChecks: giteaChecks,
  readBaseChecks: giteaBaseChecks,
  readThreads: giteaThreads,
  readReviews: giteaReviews,
  readConversation: readIssueComments,
  mayWrite: giteaMayWrite,
  demandsNewestBase: giteaDemandsNewestBase,
  readLog: giteaLog,
  writeComment: writeIssueComment,
  replyToThread: giteaReply,
  resolveThread: giteaResolve,
  writeReview: giteaReview,
  makeReady: giteaMakeReady,
  rerunCheck: giteaRerun,
  askForReview: (call, number, user) => askGitHubForReview(call, `${pulls(call)}/${number}`, user),
  askByName: (call, number, name) => askGitHubByName(call, `${pulls(call)}/${number}`, name),
  addLabel: (call, number, label) => did(() => addLabel(call, number, label)),
  assign: (call, number, login) => did(() => assign(call, number, login)),
};

/** There is no filter by branch, so the list is read until it ends: newest first, open ones before ended ones. */
async function listAll(
  call: ForgeCall,
  state: "open" | "closed",
  branch: string,
): Promise<readonly KnownPullRequest[]> {
  const listed: KnownPullRequest[] = [];
  for (let page = 1; page <= MAX_PAGES; page += 1) {
    const query = new URLSearchParams({ state, limit: String(PAGE_SIZE), page: String(page) }).toString();
    const rows = requireList(call, await askForge(call, "GET", `${pulls(call)}?${query}`));
    listed.push(...rows.map((row) => readGitHubForm(call, row)).filter(({ isHere }) => isHere(branch)));
    // A full list may be shorter than was asked for, an unfinished one is not empty.
    if (rows.length === 0 || (state === "closed" && listed.length > 0)) break;
  }
  return listed;
}

/** By its number: the repository's own, or its organisation's. */
async function addLabel(call: ForgeCall, number: number, label: string): Promise<Did | undefined> {
  const [owner = ""] = call.forge.project.split("/");
  const id =
    (await labelId(call, `/repos/${call.forge.project}/labels`, label)) ??
    // A person has none.
    (await labelId(call, `/orgs/${owner}/labels`, label).catch(() => undefined));
  if (id === undefined) return { done: false, why: `the repository has no label ${label}` };
  await askForge(call, "POST", `/repos/${call.forge.project}/issues/${number}/labels`, { labels: [id] });
  return undefined;
}

async function labelId(call: ForgeCall, path: string, label: string): Promise<number | undefined> {
  for (let page = 1; page <= MAX_PAGES; page += 1) {
    const list = requireList(call, await askForge(call, "GET", `${path}?limit=${PAGE_SIZE}&page=${page}`));
    const rows = list as readonly { readonly id: number; readonly name: string }[];
    const known = rows.find(({ name }) => name === label);
    if (known !== undefined || rows.length === 0) return known?.id;
  }
  return undefined;
}

/** The list that it is given replaces the one that is there. */
async function assign(call: ForgeCall, number: number, login: string): Promise<undefined> {
  const issue = `/repos/${call.forge.project}/issues/${number}`;
  const { assignees } = (await askForge(call, "GET", issue)) as {
    readonly assignees?: readonly GitHubUser[] | null;
  };
  const others = (assignees ?? []).map((one) => one.login);
  await askForge(call, "PATCH", issue, { assignees: [...others, login] });
}
