/** Pull requests by the forges' own APIs: looked up by branch, else made; looked up again if another client was faster. */
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

/** Opens the branch's pull request, or updates the open one. @throws ForgeRefusal */
export async function openPullRequest(call: ForgeCall, request: PullRequest): Promise<OpenedPullRequest> {
  const { path, open, fields, changes, update, found } = (call.place.kind === "github" ? github : gitlab)(
    call.place.project,
    request,
  );
  const updated = async () => {
    const [first] = (await askForge(
      call,
      "GET",
      `${path}?${new URLSearchParams(open).toString()}`,
    )) as Answer[];
    if (first === undefined) return undefined;
    const { number } = found(first);
    const now = await askForge(call, update, `${path}/${number}`, changes);
    return { ...found(now as Answer), created: false };
  };
  const known = await updated();
  if (known !== undefined) return known;
  try {
    return {
      ...found((await askForge(call, "POST", path, { ...fields, ...changes })) as Answer),
      created: true,
    };
  } catch (error) {
    // Another client was faster, or the answer to an earlier attempt was lost.
    if (!(error instanceof ForgeRefusal) || (error.status !== 409 && error.status !== 422)) throw error;
    const other = await updated();
    if (other === undefined) throw error;
    return other;
  }
}

interface Answer {
  readonly html_url: string;
  readonly number: number;
  readonly web_url: string;
  readonly iid: number;
}

/** A forge's requests for one pull request. */
interface Forge {
  readonly path: string;
  /** The query for the branch's open one. */
  readonly open: Readonly<Record<string, string>>;
  /** What a new one gets besides `changes`, with which `update` updates an open one. */
  readonly fields: object;
  readonly changes: object;
  readonly update: "PATCH" | "PUT";
  readonly found: (answer: Answer) => Pick<OpenedPullRequest, "url" | "number">;
}

/** Source: docs.github.com/rest/pulls/pulls, version 2022-11-28. */
function github(project: string, { branch, into, title, body, draft }: PullRequest): Forge {
  const [owner = ""] = project.split("/");
  return {
    path: `/repos/${project}/pulls`,
    open: { state: "open", head: `${owner}:${branch}`, base: into },
    // Only for a new one: later the person decides whether it is a draft, and this API cannot change that.
    fields: { head: branch, base: into, draft },
    changes: { title, body },
    update: "PATCH",
    found: ({ html_url: url, number }) => ({ url, number }),
  };
}

/** Source: docs.gitlab.com/api/merge_requests. The title marks a draft. */
function gitlab(project: string, { branch, into, title, body, draft }: PullRequest): Forge {
  const branches = { source_branch: branch, target_branch: into };
  return {
    path: `/projects/${encodeURIComponent(project)}/merge_requests`,
    open: { state: "opened", ...branches },
    fields: branches,
    changes: { title: draft ? `Draft: ${title}` : title, description: body },
    update: "PUT",
    found: ({ web_url: url, iid: number }) => ({ url, number }),
  };
}
