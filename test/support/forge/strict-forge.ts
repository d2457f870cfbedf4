/** A strict fake of GitHub or GitLab with one pull request, on Git's own server: it refuses what they refuse, and records what it was asked. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { makeRemote, serveGit, type GitServer } from "../remotes.ts";
import { githubRoutes } from "./github-fake.ts";
import { gitlabRoutes } from "./gitlab-fake.ts";
import { keptPull, type KeptPull } from "./kept-pull.ts";
import { answerOf, Refusal, refused, type Answered, type Asked, type Route } from "./routes.ts";

export type StrictKind = "github" | "gitlab";

export interface StrictForge extends KeptPull {
  readonly kind: StrictKind;
  readonly token: string;
  /** The repository's address. */
  readonly url: string;
  readonly git: GitServer;
  /** `METHOD path` of each request that had the right credential, in order. */
  readonly calls: string[];
  /** Set by a test: the name that the repository has now; the former one refers there. */
  renamed: string | undefined;
  /** Set by a test: so many of the next links to logs are over. */
  deadLinks: number;
  /** Set by a test: what is answered instead of doing what is asked. */
  instead: ((asked: Asked) => Answered | undefined) | undefined;
  /** Set by a test: whether what was done is answered with a 502, as by a proxy that lost the answer. */
  losesAnswer: ((asked: Asked) => boolean) | undefined;
}

const VERSIONS: ReadonlySet<unknown> = new Set(["2022-11-28", "2026-03-10"]);

export async function strictForge(kind: StrictKind, token = "strict-forge-token"): Promise<StrictForge> {
  const remote = makeRemote({ "README.md": "# Here\n" });
  const pull = keptPull(remote);
  const routes: readonly Route[] =
    kind === "github" ? githubRoutes(pull, () => git.origin) : gitlabRoutes(pull);
  const api = kind === "github" ? /^\/api(?:\/v3)?(\/.*)$/ : /^\/api\/v4(\/.*)$/;
  const answerTo = (asked: Asked): Answered => {
    const given = forge.instead?.(asked) ?? movedTo(forge, asked);
    if (given !== undefined) return given;
    try {
      const answer = answerOf(routes, { ...asked, path: formerPath(forge, asked.path) });
      return forge.losesAnswer?.(asked) === true ? refused(502, "Bad gateway") : answer;
    } catch (error) {
      if (error instanceof Refusal) return error.answer;
      throw error;
    }
  };
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<boolean> => {
    const url = new URL(request.url ?? "/", "http://forge");
    const log = /^\/logs\/(\d+)$/.exec(url.pathname);
    const [, path] = api.exec(url.pathname) ?? [];
    if (log === null && path === undefined) return false;
    const sent = await text(request);
    if (log !== null) {
      // Where logs are, a credential of the forge is a mistake.
      const known = pull.checks.find(({ id }) => String(id) === log[1]);
      const isStranger = request.headers.authorization === undefined;
      const isOver = forge.deadLinks > 0;
      if (isOver) forge.deadLinks -= 1;
      const refusal = isOver ? refused(403, "Request has expired") : refused(400, "No.");
      const isGiven = isStranger && !isOver && known !== undefined;
      send(response, isGiven ? { status: 200, body: known.log } : refusal);
      return true;
    }
    const { method = "GET", headers } = request;
    const isRight = headers.authorization === `Bearer ${token}`;
    if (headers["user-agent"] === undefined) send(response, refused(403, "no agent"));
    else if (!isRight) send(response, refused(401, "Bad credentials"));
    else if (kind === "github" && !VERSIONS.has(headers["x-github-api-version"]))
      send(response, refused(400, "That version of the API is not known."));
    else {
      forge.calls.push(`${method} ${path ?? ""}`);
      const fields = sent === "" ? {} : (JSON.parse(sent) as Asked["fields"]);
      send(response, answerTo({ method, path: path ?? "", query: url.searchParams, fields, headers }));
    }
    return true;
  };
  const git = await serveGit(remote, token, handle);
  const forge: StrictForge = Object.assign(pull, {
    kind,
    token,
    url: `${git.origin}/acme/app.git`,
    git,
    calls: [],
    renamed: undefined,
    deadLinks: 0,
    instead: undefined,
    losesAnswer: undefined,
  });
  return forge;
}

function send(response: ServerResponse, { status, body, headers = {} }: Answered): void {
  const isText = typeof body === "string";
  response.writeHead(status, { "content-type": isText ? "text/plain" : "application/json", ...headers });
  response.end(isText ? body : JSON.stringify(body ?? null));
}

type Renamed = Pick<StrictForge, "renamed" | "kind">;

const pathOf = (kind: StrictKind, project: string): string =>
  kind === "github" ? `/repos/${project}` : `/projects/${encodeURIComponent(project)}`;

/** A renamed repository's former name refers to the present one: on GitHub by its number, on GitLab by its path. */
function movedTo({ renamed, kind }: Renamed, { path }: Asked): Answered | undefined {
  if (renamed === undefined) return undefined;
  const [from, now] = [pathOf(kind, "acme/app"), pathOf(kind, renamed)];
  if (path === "/repositories/5" || path === now)
    return { status: 200, body: { id: 5, full_name: renamed, path_with_namespace: renamed } };
  if (path !== from && !path.startsWith(`${from}/`)) return undefined;
  const to = kind === "github" ? "/api/v3/repositories/5" : `/api/v4${now}`;
  return {
    status: 301,
    headers: { location: `${to}${path.slice(from.length)}` },
    body: { message: "Moved" },
  };
}

/** The routes know it by its first name. */
function formerPath({ renamed, kind }: Renamed, path: string): string {
  if (renamed === undefined) return path;
  return path.replace(pathOf(kind, renamed), pathOf(kind, "acme/app"));
}
