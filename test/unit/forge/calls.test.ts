import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import { parseForge } from "../../../activities/config/git-settings.ts";
import { askForge, limitIn } from "../../../activities/forge/calls.ts";
import { openPullRequest } from "../../../activities/forge/open-pull-request.ts";
import { createFakeForge } from "../../support/fake-forge.ts";
import { listen } from "../../support/listen.ts";

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

async function serve(answer: Answer): Promise<string> {
  return `http://127.0.0.1:${await listen(createServer(answer))}`;
}

const callTo = (origin: string, project = "acme/app", kind: "github" | "gitlab" = "github") => ({
  forge: parseForge(`${origin}/${project}.git`, kind) ?? expect.fail("no forge"),
  token: "secret",
  signal: AbortSignal.timeout(60_000),
});

const ask = (origin: string) => askForge(callTo(origin), "GET", "/x");

const refusing = (status: number, headers: Readonly<Record<string, string>>) =>
  serve((asked, answer) => {
    asked.resume();
    answer.writeHead(status, headers).end("{}");
  });

const request = {
  session: "a",
  branch: "longhaul/a",
  commit: "c1",
  into: "main",
  title: "Do it",
  body: "Done.",
  draft: false,
};

describe("a refusal by a forge", () => {
  it.each([
    ["a limit with seconds", 403, { "retry-after": "60" }, 61_000],
    ["too many requests", 429, { "retry-after": "5" }, 6_000],
    ["a pause that is too long to wait for at once", 429, { "retry-after": "86400" }, 900_000],
    ["a server at work", 503, { "retry-after": "7" }, 8_000],
  ])("passes, and says when: %s", async (_what, status, headers, retryAfterMs) => {
    await expect(ask(await refusing(status, headers))).rejects.toMatchObject({
      name: "ForgeRefusal",
      status,
      isPassing: true,
      retryAfterMs,
    });
  });

  it.each([
    ["missing rights", 403, {}],
    [
      "missing rights while requests are left",
      403,
      { "x-ratelimit-remaining": "12", "x-ratelimit-reset": "1" },
    ],
    ["a wrong token", 401, { "retry-after": "60" }],
    ["nothing there", 404, {}],
    ["a wrong order", 422, {}],
  ])("stays: %s", async (_what, status, headers) => {
    const origin = await refusing(status, headers);
    await expect(ask(origin)).rejects.toMatchObject({ status, isPassing: false, retryAfterMs: undefined });
  });
});

describe("a limit", () => {
  const now = Date.parse("2026-11-27T06:00:00Z");
  const at = (seconds: number) => String(now / 1_000 + seconds);

  it.each([
    ["a date", { "retry-after": "Fri, 27 Nov 2026 06:00:30 GMT" }, 31_000],
    ["a date that is over", { "retry-after": "Fri, 27 Nov 2026 05:00:00 GMT" }, 1_000],
    ["GitHub's reset", { "x-ratelimit-remaining": "0", "x-ratelimit-reset": at(10) }, 11_000],
    ["GitLab's reset", { "ratelimit-remaining": "0", "ratelimit-reset": at(20) }, 21_000],
    ["a reset far away", { "ratelimit-remaining": "0", "ratelimit-reset": at(3_600) }, 900_000],
  ])("ends by %s", (_what, headers, retryAfterMs) => {
    expect(limitIn(403, new Headers(headers), now)).toMatchObject({ retryAfterMs });
  });

  it.each([
    ["words", { "retry-after": "soon" }],
    ["a reset that is no number", { "x-ratelimit-remaining": "0", "x-ratelimit-reset": "soon" }],
    ["a reset while requests are left", { "x-ratelimit-remaining": "1", "x-ratelimit-reset": at(10) }],
  ])("is not read from %s", (_what, headers) => {
    expect(limitIn(403, new Headers(headers), now)).toBeUndefined();
  });
});

describe("a repository that was renamed", () => {
  /** Answers as a forge does whose repository `old` is `acme/app` now. */
  async function renamed(kind: "github" | "gitlab", status: number) {
    const forge = createFakeForge("secret", () => ["main", "longhaul/a"]);
    const seen: string[] = [];
    const old = kind === "github" ? "/acme/old" : "/acme%2Fold";
    const origin = await serve((asked, answer) => {
      const url = asked.url ?? "";
      seen.push(`${asked.method} ${url}`);
      if (!url.includes(old)) {
        if (/^\/api\/v[34]\/(repositories\/7|projects\/7)$/.test(url)) {
          const named = { full_name: "acme/app", path_with_namespace: "acme/app" };
          return void answer
            .writeHead(200, { "content-type": "application/json" })
            .end(JSON.stringify(named));
        }
        return void forge.handle(asked, answer);
      }
      asked.resume();
      const id = kind === "github" ? "/api/v3/repositories/7" : "/api/v4/projects/7";
      const [, rest = ""] = url.split(old);
      answer.writeHead(status, { location: `${id}${rest}` }).end("{}");
    });
    return { forge, origin, seen };
  }

  it.each([
    ["github", 301],
    ["github", 307],
    ["gitlab", 301],
  ] as const)("gets its pull request under its present name: %s, %d", async (kind, status) => {
    const { forge, origin } = await renamed(kind, status);
    const call = callTo(origin, "acme/old", kind);
    expect(await openPullRequest(call, request)).toMatchObject({ number: 1, created: true });
    expect(await openPullRequest(call, request)).toMatchObject({ number: 1, created: false });
    expect(forge.requests).toHaveLength(1);
  });

  it.each([
    ["another server", (_origin: string, other: string) => `${other}/api/v3/repositories/7`],
    ["another part of the server", (origin: string) => `${origin}/elsewhere`],
    ["a place above its API", () => "/api/v3/../../elsewhere"],
    ["no address", () => "http://"],
  ])("never takes the token to %s", async (_what, location) => {
    const seen: string[] = [];
    const other = await serve((asked, answer) => {
      seen.push(`${asked.url}`);
      answer.end("{}");
    });
    let origin = "";
    origin = await serve((asked, answer) => {
      asked.resume();
      if (asked.url?.startsWith("/api/v3/repos/") !== true) seen.push(`${asked.url}`);
      answer.writeHead(301, { location: location(origin, other) }).end("{}");
    });
    await expect(openPullRequest(callTo(origin), request)).rejects.toThrow(/answered 301.*new address/);
    expect(seen).toEqual([]);
  });

  it("is given up if it moves in a circle", async () => {
    let count = 0;
    const origin = await serve((asked, answer) => {
      asked.resume();
      count += 1;
      answer.writeHead(301, { location: asked.url ?? "" }).end("{}");
    });
    await expect(openPullRequest(callTo(origin), request)).rejects.toMatchObject({ isPassing: false });
    expect(count).toBeLessThan(10);
  });
});
