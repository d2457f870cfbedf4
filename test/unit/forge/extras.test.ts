/** What a new pull request gets besides its text, from servers that answer as the forges say they do. */
import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import { parseForge } from "../../../activities/config/git-settings.ts";
import { addExtras, linkedIssue } from "../../../activities/forge/open-pull-request.ts";
import { listen } from "../../support/listen.ts";

type Kind = "github" | "gitlab" | "gitea";
type Answers = Readonly<Record<string, unknown>>;

/** Answers `METHOD path` of the project; a number is a refusal. Whatever is not listed is not there. */
async function server(kind: Kind, answers: Answers) {
  const sent: (readonly [order: string, fields: unknown])[] = [];
  const http = createServer((asked, answer) => {
    void (async () => {
      const url = new URL(asked.url ?? "/", "http://forge");
      const path = url.pathname.replace(/^\/api\/v\d(\/repos\/acme\/app|\/projects\/acme%2Fapp)?/, "");
      const order = `${asked.method} ${decodeURIComponent(path)}${url.searchParams.has("username") ? url.search : ""}`;
      const body = await text(asked);
      if (asked.method !== "GET") sent.push([order, JSON.parse(body) as unknown]);
      const found = answers[order] ?? 404;
      const [status, value] = typeof found === "number" ? [found, { message: "refused" }] : [200, found];
      answer.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
    })();
  });
  const forge =
    parseForge(`http://127.0.0.1:${await listen(http)}/acme/app.git`, kind) ?? expect.fail("no forge");
  return { sent, call: { forge, token: "secret", signal: AbortSignal.timeout(60_000) } };
}

const wanted = {
  labels: ["agent", "none"],
  reviewers: ["bob", "acme/web", "eve"],
  assignee: "ann",
  isDraft: false,
  remarks: ["said before"],
};

const ADA = { id: 7, username: "ann", login: "ann" };
const BOB = { id: 8, username: "bob", login: "bob" };

describe("a new pull request", () => {
  it("gets labels, reviewers, an assignee on GitHub, and a remark for each that fails (C11)", async () => {
    const { sent, call } = await server("github", {
      "GET /labels/agent": { name: "agent" },
      "POST /issues/1/labels": [],
      "POST /pulls/1/requested_reviewers": {},
      "POST /issues/1/assignees": { assignees: [ADA] },
    });
    expect(await addExtras(call, { number: 1 }, wanted)).toEqual([
      "said before",
      expect.stringMatching(/^not set: the label none \(.* answered 404/) as string,
    ]);
    expect(sent).toEqual([
      ["POST /issues/1/labels", { labels: ["agent"] }],
      ["POST /pulls/1/requested_reviewers", { reviewers: ["bob"] }],
      ["POST /pulls/1/requested_reviewers", { team_reviewers: ["web"] }],
      ["POST /pulls/1/requested_reviewers", { reviewers: ["eve"] }],
      ["POST /issues/1/assignees", { assignees: ["ann"] }],
    ]);
  });

  it("gets none of what GitHub refuses or passes over, whatever the status (C11)", async () => {
    const { call } = await server("github", {
      "GET /labels/agent": { name: "agent" },
      "POST /issues/1/labels": 502,
      "POST /pulls/1/requested_reviewers": 422,
      "POST /issues/1/assignees": { assignees: [] },
    });
    const remarks = await addExtras(call, { number: 1 }, { ...wanted, labels: ["agent"], remarks: [] });
    expect(remarks).toEqual([
      expect.stringMatching(/the label agent .*502/) as string,
      expect.stringMatching(/the reviewer bob .*422/) as string,
      expect.stringMatching(/the reviewer acme\/web .*422/) as string,
      expect.stringMatching(/the reviewer eve .*422/) as string,
      "not set: the assignee ann (ann may not be assigned in this repository)",
    ]);
  });

  it("gets them on GitLab by the people's numbers, where teams are not asked (C11)", async () => {
    const { sent, call } = await server("gitlab", {
      "GET /labels/agent": { name: "agent" },
      "GET /users?username=bob": [BOB],
      "GET /users?username=ann": [ADA],
      "GET /users?username=eve": [],
      "GET /merge_requests/1": { reviewers: [], assignees: [{ id: 3, username: "dev" }] },
      "PUT /merge_requests/1": { reviewers: [BOB], assignees: [ADA] },
    });
    expect(await addExtras(call, { number: 1 }, { ...wanted, remarks: [] })).toEqual([
      expect.stringMatching(/the label none/) as string,
      "not set: the reviewer acme/web (GitLab asks no groups for a review (acme/web))",
      "not set: the reviewer eve (GitLab knows nobody named eve)",
    ]);
    expect(sent).toEqual([
      ["PUT /merge_requests/1", { add_labels: "agent" }],
      ["PUT /merge_requests/1", { reviewer_ids: [8] }],
      ["PUT /merge_requests/1", { assignee_ids: [3, 7] }],
    ]);
  });

  it("is said to be no draft where the server marks drafts otherwise (C15)", async () => {
    const { call } = await server("gitea", {});
    const none = { labels: [], reviewers: [], assignee: undefined, remarks: [] };
    const remarks = await addExtras(call, { number: 1, isDraft: false }, { ...none, isDraft: true });
    expect(remarks).toEqual([expect.stringContaining("it is no draft") as string]);
    for (const isDraft of [true, undefined])
      expect(await addExtras(call, { number: 1, isDraft }, { ...none, isDraft: true })).toEqual([]);
  });
});

describe("the issue that a task is about", () => {
  const place = (url: string, kind: Kind = "github") => parseForge(url, kind) ?? expect.fail("no forge");
  const of = (task: string, url = "https://github.com/acme/app.git", kind: Kind = "github") =>
    linkedIssue(task, url, place(url, kind));

  it.each<[number | undefined, string, string?, Kind?]>([
    [12, "Fix https://github.com/acme/app/issues/12"],
    [
      12,
      "See (https://github.com/Acme/App/issues/12), and https://github.com/acme/app/issues/12#issuecomment-1.",
    ],
    [12, "https://github.com/acme/app/issues/12.", "git@github.com:acme/app.git"],
    [12, "https://github.com/acme/app/issues/12", "ssh://git@ssh.github.com:443/acme/app.git"],
    [7, "Do https://gitlab.com/acme/sub/app/-/issues/7", "https://gitlab.com/acme/sub/app", "gitlab"],
    [7, "Do https://gitlab.com/acme/app/-/work_items/7", "https://gitlab.com/acme/app", "gitlab"],
    [3, "https://host.test/git/acme/app/issues/3", "https://host.test/git/acme/app.git", "gitea"],
    [undefined, "Fix #12"],
    [undefined, "https://github.com/acme/app/issues/12 and https://github.com/acme/app/issues/13"],
    [undefined, "https://github.com/other/app/issues/12"],
    [undefined, "https://github.com/x/acme/app/issues/12"],
    [undefined, "https://evil.test/acme/app/issues/12"],
    [undefined, "https://github.com/acme/app/pull/12"],
    [undefined, "https://github.com/acme/app/issues/12345678901"],
  ])("is %s for: %s", (issue, task, url, kind) => {
    expect(of(task, url, kind)).toBe(issue);
  });
});
