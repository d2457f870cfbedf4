/**
 * Pull requests with the rules of GitHub, GitLab and Gitea: required fields, one open request for a branch (422 and 409), tokens. Source:
 * docs.github.com/rest/pulls/pulls, docs.gitlab.com/api/merge_requests, and Gitea 1.24.6 (test/forge).
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import type { FakeGitHubApp } from "./fake-github-app.ts";

interface KeptRequest {
  readonly number: number;
  readonly branch: string;
  /** The fork that has the branch; default the repository itself. */
  readonly fork?: string;
  /** A person may change it, as all that follows. */
  into: string;
  title: string;
  body: string;
  draft: boolean;
  state?: "closed" | "merged";
  /** The branch's commit when it was merged. */
  commit?: string;
}

export interface FakeForge {
  readonly requests: KeptRequest[];
  /** Answers this many lookups as if nothing were open: a concurrent request opens one in between. */
  blindLookups: number;
  /** Set by a test: drafts do not exist here, as in free private repositories. */
  withoutDrafts?: boolean;
  /** The next new one is made, and the answer is lost. */
  loseAnswer?: boolean;
  /** @returns false for requests that are not for the forge */
  readonly handle: (request: IncomingMessage, response: ServerResponse) => Promise<boolean>;
}

export interface Answer {
  readonly status: number;
  readonly body: unknown;
}

export type Fields = Record<string, unknown>;

/** @param token the accepted token, or the App whose tokens are accepted */
export function createFakeForge(token: string | FakeGitHubApp, branches: () => readonly string[]): FakeForge {
  const isRight = (secret: string) => (typeof token === "string" ? secret === token : token.takes(secret));
  const forge: FakeForge = {
    requests: [],
    blindLookups: 0,
    async handle(request, response) {
      const url = new URL(request.url ?? "/", "http://forge");
      const [, kind, path = ""] = /^\/api\/(v1|v3|v4)(\/.*)$/.exec(url.pathname) ?? [];
      if (kind === undefined) return false;
      const sent = await text(request);
      const send = ({ status, body }: Answer) =>
        response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
      const secret = (request.headers.authorization ?? "").replace(/^Bearer /, "");
      const fields = (sent === "" ? {} : JSON.parse(sent)) as Fields;
      const method = request.method ?? "GET";
      const ofApp = typeof token === "string" ? undefined : token.answer(method, path, secret, fields);
      if (request.headers["user-agent"] === undefined) send({ status: 403, body: { message: "no agent" } });
      else if (kind === "v3" && ofApp !== undefined) send(ofApp);
      else if (!isRight(secret)) send({ status: 401, body: { message: "Bad credentials" } });
      else {
        const answers = { v1: gitea, v3: github, v4: gitlab }[kind] ?? gitlab;
        send(answers(method, path, url.searchParams, fields));
      }
      return true;
    },
  };

  function listed(branch: string, query: URLSearchParams, target: string): KeptRequest[] {
    if (forge.blindLookups > 0) {
      forge.blindLookups -= 1;
      return [];
    }
    const into = query.get(target);
    return forge.requests.filter(
      (request) =>
        request.branch === branch &&
        (into === null || request.into === into) &&
        (query.get("state") === "all" || request.state === undefined),
    );
  }

  function createRequest(request: Omit<KeptRequest, "number">, conflictStatus: number): KeptRequest | Answer {
    const missing = [request.branch, request.into].find((name) => !branches().includes(name));
    if (missing !== undefined || request.title === "")
      return {
        status: 422,
        body: { message: "Validation Failed", errors: [{ field: "head", code: "invalid" }] },
      };
    if (request.draft && forge.withoutDrafts === true)
      return {
        status: 422,
        body: { message: "Draft pull requests are not supported in this repository." },
      };
    if (
      forge.requests.some(
        ({ branch, into, state, fork }) =>
          fork === undefined && branch === request.branch && into === request.into && state === undefined,
      )
    )
      return { status: conflictStatus, body: { message: ["Another open request exists for this branch"] } };
    const created = { ...request, number: forge.requests.length + 1 };
    forge.requests.push(created);
    if (forge.loseAnswer === true) {
      forge.loseAnswer = false;
      return { status: 502, body: { message: "Bad gateway" } };
    }
    return created;
  }

  function github(method: string, path: string, query: URLSearchParams, fields: Fields): Answer {
    const toGitHub = (entry: KeptRequest) => ({
      ...entry,
      state: entry.state === undefined ? "open" : "closed",
      merged_at: entry.state === "merged" ? "2026-01-01T00:00:00Z" : null,
      base: { ref: entry.into, repo: { full_name: "acme/app" } },
      head: {
        sha: entry.commit ?? "",
        ref: entry.branch,
        repo: { full_name: entry.fork ?? "acme/app" },
      },
      html_url: `https://forge.example/acme/app/pull/${entry.number}`,
    });
    if (path === "/repos/acme/app/pulls" && method === "GET") {
      const [owner, branch] = (query.get("head") ?? "").split(":");
      // Without the owner, GitHub ignores the filter and returns all.
      if (owner !== "acme") return { status: 200, body: forge.requests.map(toGitHub) };
      return { status: 200, body: listed(branch ?? "", query, "base").map(toGitHub) };
    }
    if (path === "/repos/acme/app/pulls" && method === "POST") {
      const { title, head, base, body, draft } = fields as {
        title: string;
        head: string;
        base: string;
        body: string;
        draft: boolean;
      };
      const created = createRequest({ title, branch: head, into: base, body, draft }, 422);
      return "status" in created ? created : { status: 201, body: toGitHub(created) };
    }
    const found = forge.requests.find(({ number }) => path === `/repos/acme/app/pulls/${number}`);
    if (found === undefined || method !== "PATCH") return { status: 404, body: { message: "Not Found" } };
    change(found, { title: fields["title"], body: fields["body"] });
    return { status: 200, body: toGitHub(found) };
  }

  /** Only what is given: the rest stays. */
  function change(entry: KeptRequest, fields: Fields): void {
    Object.assign(
      entry,
      Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)),
    );
  }

  function gitlab(method: string, path: string, query: URLSearchParams, fields: Fields): Answer {
    const toGitLab = (entry: KeptRequest) => ({
      iid: entry.number,
      state: entry.state ?? "opened",
      title: entry.title,
      description: entry.body,
      target_branch: entry.into,
      source_branch: entry.branch,
      source_project_id: entry.fork === undefined ? 1 : 2,
      target_project_id: 1,
      sha: entry.commit ?? "",
      web_url: `https://forge.example/-/merge_requests/${entry.number}`,
    });
    const list = "/projects/acme%2Fapp/merge_requests";
    if (path === list && method === "GET")
      return {
        status: 200,
        body: listed(query.get("source_branch") ?? "", query, "target_branch").map(toGitLab),
      };
    if (path === list && method === "POST") {
      const {
        title,
        source_branch: branch,
        target_branch: into,
        description: body,
      } = fields as Record<string, string>;
      const draft = title?.startsWith("Draft: ") === true;
      const created = createRequest(
        { title: title ?? "", branch: branch ?? "", into: into ?? "", body: body ?? "", draft },
        409,
      );
      return "status" in created ? created : { status: 201, body: toGitLab(created) };
    }
    const found = forge.requests.find(({ number }) => path === `${list}/${number}`);
    if (found === undefined || method !== "PUT") return { status: 404, body: { message: "404 Not found" } };
    const { title } = fields;
    change(found, { title, body: fields["description"] });
    // The title marks a draft.
    if (typeof title === "string") found.draft = title.startsWith("Draft: ");
    return { status: 200, body: toGitLab(found) };
  }

  /** A list has no filter by branch, and is never longer than 50, newest first. */
  function gitea(method: string, path: string, query: URLSearchParams, fields: Fields): Answer {
    const toGitea = (entry: KeptRequest) => {
      const here = { id: 1, full_name: "acme/app" };
      const repo = entry.fork === undefined ? here : { id: 2, full_name: entry.fork };
      return {
        number: entry.number,
        html_url: `https://forge.example/acme/app/pulls/${entry.number}`,
        title: entry.title,
        body: entry.body,
        draft: entry.draft,
        state: entry.state === undefined ? "open" : "closed",
        merged: entry.state === "merged",
        merged_at: entry.state === "merged" ? "2026-01-01T00:00:00Z" : null,
        base: { ref: entry.into, repo_id: 1, repo: here },
        head: { ref: entry.branch, sha: entry.commit ?? "", repo_id: repo.id, repo },
      };
    };
    const list = "/repos/acme/app/pulls";
    if (path === list && method === "GET") {
      const [limit, page] = [query.get("limit") ?? "30", query.get("page") ?? "1"].map(Number);
      const size = Math.min(limit ?? 30, 50);
      const state = query.get("state") ?? "open";
      const blind = forge.blindLookups > 0 && state === "closed";
      if (blind) forge.blindLookups -= 1;
      const isListed = ({ state: is }: KeptRequest) =>
        state === "all" || (state === "open") === (is === undefined);
      const kept = forge.blindLookups > 0 || blind ? [] : forge.requests.filter(isListed).toReversed();
      return { status: 200, body: kept.slice(size * ((page ?? 1) - 1), size * (page ?? 1)).map(toGitea) };
    }
    if (path === list && method === "POST") {
      const { title = "", head = "", base = "", body = "" } = fields as Record<string, string>;
      const draft = /^(WIP:|\[WIP\])/i.test(title);
      const created = createRequest({ title, branch: head, into: base, body, draft }, 409);
      return "status" in created ? created : { status: 201, body: toGitea(created) };
    }
    const found = forge.requests.find(({ number }) => path === `${list}/${number}`);
    if (found === undefined || method !== "PATCH") return { status: 404, body: { message: "Not Found" } };
    change(found, { title: fields["title"], body: fields["body"] });
    if (typeof fields["title"] === "string") found.draft = /^(WIP:|\[WIP\])/i.test(fields["title"]);
    return { status: 201, body: toGitea(found) };
  }

  return forge;
}
