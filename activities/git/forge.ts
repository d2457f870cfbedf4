/** Pull requests by the forges' own interfaces: looked up by branch, then made; found again if another was faster. */
import { askForge, ForgeRefusal, type ForgeCall } from "./forge-calls.ts";

export interface PullRequest {
  readonly branch: string;
  /** The branch that it is to be merged into. */
  readonly into: string;
  readonly title: string;
  readonly body: string;
  readonly draft: boolean;
}

export interface OpenedPullRequest {
  readonly url: string;
  readonly number: number;
  readonly created: boolean;
}

/** Makes the branch's pull request, or brings the one that is open up to date. @throws ForgeRefusal */
export async function openPullRequest(call: ForgeCall, request: PullRequest): Promise<OpenedPullRequest> {
  const forge = call.place.kind === "github" ? github(call) : gitlab(call);
  const open = await forge.find(request);
  if (open !== undefined) return { ...(await forge.update(open, request)), created: false };
  try {
    return { ...(await forge.create(request)), created: true };
  } catch (error) {
    // Another client was faster, or the answer to an earlier attempt was lost.
    if (!(error instanceof ForgeRefusal) || (error.status !== 409 && error.status !== 422)) throw error;
    const other = await forge.find(request);
    if (other === undefined) throw error;
    return { ...(await forge.update(other, request)), created: false };
  }
}

type Found = Pick<OpenedPullRequest, "url" | "number">;

interface Forge {
  find(request: PullRequest): Promise<Found | undefined>;
  create(request: PullRequest): Promise<Found>;
  update(open: Found, request: PullRequest): Promise<Found>;
}

/** Source: docs.github.com/rest/pulls/pulls, version 2022-11-28. */
function github(call: ForgeCall): Forge {
  const [owner = ""] = call.place.project.split("/");
  const pulls = `/repos/${call.place.project}/pulls`;
  const found = ({ html_url: url, number }: { html_url: string; number: number }): Found => ({ url, number });
  return {
    async find({ branch, into }) {
      const query = new URLSearchParams({ state: "open", head: `${owner}:${branch}`, base: into });
      const list = (await askForge(call, "GET", `${pulls}?${query.toString()}`)) as {
        html_url: string;
        number: number;
      }[];
      return list[0] && found(list[0]);
    },
    create: async ({ title, body, branch, into, draft }) =>
      found((await askForge(call, "POST", pulls, { title, body, head: branch, base: into, draft })) as never),
    // Whether it is a draft is the person's to change by now; this interface could not.
    update: async ({ number }, { title, body }) =>
      found((await askForge(call, "PATCH", `${pulls}/${number}`, { title, body })) as never),
  };
}

/** Source: docs.gitlab.com/api/merge_requests. A draft is one whose title says so. */
function gitlab(call: ForgeCall): Forge {
  const requests = `/projects/${encodeURIComponent(call.place.project)}/merge_requests`;
  const found = ({ web_url: url, iid: number }: { web_url: string; iid: number }): Found => ({ url, number });
  const titled = ({ title, draft }: PullRequest) => (draft ? `Draft: ${title}` : title);
  return {
    async find({ branch, into }) {
      const query = new URLSearchParams({ state: "opened", source_branch: branch, target_branch: into });
      const list = (await askForge(call, "GET", `${requests}?${query.toString()}`)) as {
        web_url: string;
        iid: number;
      }[];
      return list[0] && found(list[0]);
    },
    async create(request) {
      const { branch, into, body } = request;
      const fields = {
        source_branch: branch,
        target_branch: into,
        title: titled(request),
        description: body,
      };
      return found((await askForge(call, "POST", requests, fields)) as never);
    },
    async update({ number }, request) {
      const fields = { title: titled(request), description: request.body };
      return found((await askForge(call, "PUT", `${requests}/${number}`, fields)) as never);
    },
  };
}
