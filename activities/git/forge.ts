/** Pull requests by the forges' own interfaces: looked up by branch, then made; found again where another was faster. */
import type { GitConfig } from "../config/git-settings.ts";
import { shorten } from "../contract/cut-text.ts";

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

/** The forge answered, and not with what was asked for. */
export class ForgeRefusal extends Error {
  override readonly name = "ForgeRefusal";
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }

  /** Asking again may help. */
  get isPassing(): boolean {
    return this.status === 0 || this.status === 408 || this.status === 429 || this.status >= 500;
  }
}

export interface ForgePlace {
  readonly kind: "github" | "gitlab";
  readonly api: string;
  /** `owner/name`; GitLab's may have more parts. */
  readonly project: string;
}

const TIMEOUT_MS = 30_000;
const MAX_ANSWER_CHARS = 300;

/** @returns undefined where the address has no forge that is known. Pure. */
export function forgeOf(url: string, forge: GitConfig["forge"]): ForgePlace | undefined {
  const short = /^[^@/]+@([^:/]+):(.+)$/.exec(url);
  const parsed = short === null ? URL.parse(url) : null;
  const host = short?.[1] ?? parsed?.hostname ?? "";
  const path = (short?.[2] ?? parsed?.pathname ?? "").replace(/^\/+|\/+$/g, "").replace(/\.git$/, "");
  if (host === "" || !path.includes("/")) return undefined;
  const kind = forge === "auto" ? guessed(host) : forge;
  if (kind === undefined) return undefined;
  const isWeb = parsed !== null && /^https?:$/.test(parsed.protocol);
  const origin = isWeb ? parsed.origin : `https://${host}`;
  if (kind === "gitlab") return { kind, api: `${origin}/api/v4`, project: path };
  // GitHub's own server has its interface under a name of its own, GitHub Enterprise's below the same one.
  return { kind, api: host === "github.com" ? "https://api.github.com" : `${origin}/api/v3`, project: path };
}

function guessed(host: string): ForgePlace["kind"] | undefined {
  if (host === "github.com" || host.startsWith("github.")) return "github";
  return host === "gitlab.com" || host.startsWith("gitlab.") ? "gitlab" : undefined;
}

interface Call {
  readonly place: ForgePlace;
  readonly token: string | undefined;
  readonly signal: AbortSignal;
}

/** Makes the branch's pull request, or brings the one that is open up to date. @throws ForgeRefusal */
export async function openPullRequest(call: Call, request: PullRequest): Promise<OpenedPullRequest> {
  const forge = call.place.kind === "github" ? github(call) : gitlab(call);
  const open = await forge.find(request);
  if (open !== undefined) return { ...(await forge.update(open, request)), created: false };
  try {
    return { ...(await forge.create(request)), created: true };
  } catch (error) {
    // Another was faster, or an earlier attempt of ours that never heard the answer.
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
function github(call: Call): Forge {
  const [owner = ""] = call.place.project.split("/");
  const pulls = `/repos/${call.place.project}/pulls`;
  const found = ({ html_url: url, number }: { html_url: string; number: number }): Found => ({ url, number });
  return {
    async find({ branch, into }) {
      const query = new URLSearchParams({ state: "open", head: `${owner}:${branch}`, base: into });
      const list = (await ask(call, "GET", `${pulls}?${query.toString()}`)) as {
        html_url: string;
        number: number;
      }[];
      return list[0] && found(list[0]);
    },
    create: async ({ title, body, branch, into, draft }) =>
      found((await ask(call, "POST", pulls, { title, body, head: branch, base: into, draft })) as never),
    // Whether it is a draft is the person's to change by now; this interface could not.
    update: async ({ number }, { title, body }) =>
      found((await ask(call, "PATCH", `${pulls}/${number}`, { title, body })) as never),
  };
}

/** Source: docs.gitlab.com/api/merge_requests. A draft is one whose title says so. */
function gitlab(call: Call): Forge {
  const requests = `/projects/${encodeURIComponent(call.place.project)}/merge_requests`;
  const found = ({ web_url: url, iid: number }: { web_url: string; iid: number }): Found => ({ url, number });
  const titled = ({ title, draft }: PullRequest) => (draft ? `Draft: ${title}` : title);
  return {
    async find({ branch, into }) {
      const query = new URLSearchParams({ state: "opened", source_branch: branch, target_branch: into });
      const list = (await ask(call, "GET", `${requests}?${query.toString()}`)) as {
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
      return found((await ask(call, "POST", requests, fields)) as never);
    },
    async update({ number }, request) {
      const fields = { title: titled(request), description: request.body };
      return found((await ask(call, "PUT", `${requests}/${number}`, fields)) as never);
    },
  };
}

async function ask(
  { place, token, signal }: Call,
  method: string,
  path: string,
  body?: object,
): Promise<unknown> {
  let response: Response;
  try {
    response = await fetch(`${place.api}${path}`, {
      method,
      redirect: "error",
      signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
      headers: {
        accept: place.kind === "github" ? "application/vnd.github+json" : "application/json",
        "user-agent": "longhaul",
        ...(place.kind === "github" ? { "x-github-api-version": "2022-11-28" } : {}),
        ...(token === undefined ? {} : { authorization: `Bearer ${token.slice(token.indexOf(":") + 1)}` }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  } catch (error) {
    signal.throwIfAborted();
    const { cause, message } = error as Error;
    throw new ForgeRefusal(
      0,
      `${place.api} does not answer: ${cause instanceof Error ? cause.message : message}`,
    );
  }
  const text = await response.text();
  if (response.ok) {
    try {
      return JSON.parse(text);
    } catch {
      throw new ForgeRefusal(502, `${place.api} did not answer in JSON`);
    }
  }
  throw new ForgeRefusal(response.status, `${place.api} answered ${response.status}: ${wordsOf(text)}`);
}

function wordsOf(text: string): string {
  try {
    const { message, errors, error } = JSON.parse(text) as Record<string, unknown>;
    return shortened(JSON.stringify([message ?? error, errors].filter((each) => each !== undefined)));
  } catch {
    return shortened(text);
  }
}
const shortened = (text: string): string => shorten(text.replaceAll(/\p{Cc}+/gu, " "), MAX_ANSWER_CHARS);
