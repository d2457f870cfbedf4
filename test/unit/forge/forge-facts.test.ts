import { createServer } from "node:http";
import type { ExpandedMergeRequestSchema, JobSchema } from "@gitbeaker/core";
import type { components } from "@octokit/openapi-types";
import { describe, expect, it } from "vitest";
import { parseForge } from "../../../activities/config/git-settings.ts";
import {
  githubChecks,
  githubMayWrite,
  githubPullRequest,
  githubReviews,
} from "../../../activities/forge/github-facts.ts";
import { gitlabChecks, gitlabMayWrite, gitlabPullRequest } from "../../../activities/forge/gitlab-facts.ts";
import { gitlabThreads } from "../../../activities/forge/gitlab-talk.ts";
import type { Some } from "../../support/forge/some.ts";
import { listen } from "../../support/listen.ts";

type GitHub = components["schemas"];

type Answers = Readonly<Record<string, unknown>>;

/** Answers what is listed, by path; anything else, and another method or token, is refused. Lists are paged. */
async function callTo(kind: "github" | "gitlab", answers: Answers) {
  const server = createServer((asked, answer) => {
    asked.resume();
    const url = new URL(asked.url ?? "/", "http://forge");
    const path = url.pathname.replace(/^\/api\/v\d(\/repos\/acme\/app|\/projects\/acme%2Fapp)/, "");
    const body = answers[path];
    const send = (status: number, value: unknown) =>
      answer.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
    if (asked.headers.authorization !== "Bearer secret") send(401, { message: "Bad credentials" });
    else if (asked.method !== "GET" || body === undefined) send(404, { message: "Not Found" });
    else if (typeof body === "number") send(body, { message: "refused" });
    else send(200, Array.isArray(body) ? paged(body, url.searchParams) : body);
  });
  return {
    forge:
      parseForge(`http://127.0.0.1:${await listen(server)}/acme/app.git`, kind) ?? expect.fail("no forge"),
    token: "secret",
    signal: AbortSignal.timeout(60_000),
  };
}

function paged(rows: readonly unknown[], query: URLSearchParams): readonly unknown[] {
  const [size, page] = [Number(query.get("per_page") ?? 20), Number(query.get("page") ?? 1)];
  return rows.slice(size * (page - 1), size * page);
}

const ada = { id: 7, login: "ada" };

describe("GitHub says of a pull request", () => {
  const here = { id: 5, full_name: "acme/app" };
  const pull = {
    number: 1,
    html_url: "https://github.test/acme/app/pull/1",
    title: "Do it",
    body: null,
    state: "open",
    merged: false,
    merge_commit_sha: "t1",
    draft: true,
    mergeable: null,
    user: { ...ada, site_admin: false },
    labels: [{ name: "bug" }],
    head: { ref: "longhaul/a", sha: "c1", repo: here },
    base: { ref: "main", sha: "b1", repo: here },
  } satisfies Some<GitHub["pull-request"]>;
  const read = async (more: object) =>
    githubPullRequest(await callTo("github", { "/pulls/1": { ...pull, ...more } }), 1);

  it("its state, and that it is unknown whether it conflicts", async () => {
    expect(await read({})).toEqual({
      number: 1,
      url: "https://github.test/acme/app/pull/1",
      title: "Do it",
      text: "",
      state: "open",
      isDraft: true,
      author: ada,
      labels: ["bug"],
      head: { branch: "longhaul/a", commit: "c1", isHere: true },
      base: { branch: "main", commit: "b1" },
      merge: "unknown",
      repositoryId: "5",
    });
    expect(await read({ mergeable: false })).toMatchObject({ merge: "conflict" });
    expect(await read({ mergeable: true, state: "closed" })).toMatchObject({
      merge: "clean",
      state: "closed",
    });
    expect(await read({ state: "closed", merged: true, user: null })).toMatchObject({
      state: "merged",
      mergeCommit: "t1",
      isQueued: false,
      author: undefined,
    });
    expect((await read({ head: { ...pull.head, repo: null } })).head.isHere).toBeUndefined();
    expect((await read({ head: { ...pull.head, repo: { full_name: "eve/app" } } })).head.isHere).toBe(false);
  });

  const runs = Array.from(
    { length: 130 },
    (_, id) =>
      ({
        id,
        name: `run ${id}`,
        status: "completed",
        conclusion: id === 129 ? "failure" : "success",
        html_url: null,
      }) satisfies Some<GitHub["check-run"]>,
  );
  const facts = { head: { branch: "b", commit: "c1", isHere: true }, base: { branch: "main", commit: "b1" } };
  const status = { statuses: [{ context: "old", state: "pending", target_url: "https://ci.test" }] };

  it("checks of both kinds, and what rulesets and protection require", async () => {
    const held = { id: 1, name: "held", status: "completed", conclusion: "action_required", html_url: null };
    const queued = { id: 2, name: "queued", status: "queued", conclusion: null, html_url: "https://x.test" };
    const rule = { required_status_checks: [{ context: "old" }, { context: "silent" }] };
    const call = await callTo("github", {
      "/commits/c1/check-runs": { check_runs: [held, queued] },
      "/commits/c1/status": status,
      "/rules/branches/main": [{ type: "deletion" }, { type: "required_status_checks", parameters: rule }],
      "/branches/main": { protection: { required_status_checks: { contexts: ["queued"] } } },
    });
    expect(await githubChecks(call, facts)).toEqual([
      { name: "held", state: "held", isRequired: false, url: undefined, job: "1" },
      { name: "queued", state: "running", isRequired: true, url: "https://x.test", job: "2" },
      { name: "old", state: "running", isRequired: true, url: "https://ci.test", job: undefined },
      { name: "silent", state: "missing", isRequired: true, url: undefined, job: undefined },
    ]);
  });

  it("nothing of what is required to a token that may not know, but a passing failure is one", async () => {
    const known = { "/commits/c1/check-runs": { check_runs: [] }, "/commits/c1/status": status };
    const closed = await callTo("github", { ...known, "/rules/branches/main": 403 });
    expect(await githubChecks(closed, facts)).toMatchObject([{ name: "old", isRequired: undefined }]);
    const away = await callTo("github", { ...known, "/rules/branches/main": 502 });
    await expect(githubChecks(away, facts)).rejects.toMatchObject({ status: 502, isPassing: true });
  });

  it("no list where something else is answered", async () => {
    const call = await callTo("github", {
      "/commits/c1/check-runs": { check_runs: runs },
      "/commits/c1/status": {},
    });
    await expect(githubChecks(call, facts)).rejects.toMatchObject({ status: 502 });
  });

  it("reviews that were sent and stand", async () => {
    const review = (id: number, state: string) =>
      ({ id, user: ada, state, body: "", commit_id: "c1" }) satisfies Some<GitHub["pull-request-review"]>;
    const call = await callTo("github", {
      "/pulls/1/reviews": [review(1, "PENDING"), review(2, "CHANGES_REQUESTED"), review(3, "DISMISSED")],
    });
    expect(await githubReviews(call, 1)).toMatchObject([
      { id: 2, verdict: "changes-requested", commit: "c1" },
    ]);
  });

  it("that a person may write, only if the login still is theirs", async () => {
    const permission = (name: string, id: number) => ({ permission: name, user: { id } });
    const may = async (answer: unknown) =>
      githubMayWrite(await callTo("github", { "/collaborators/ada/permission": answer }), ada);
    expect(await may(permission("write", 7))).toBe(true);
    expect(await may(permission("admin", 7))).toBe(true);
    expect(await may(permission("read", 7))).toBe(false);
    expect(await may(permission("write", 8))).toBe(false);
    expect(await may(undefined)).toBe(false);
    await expect(may(503)).rejects.toMatchObject({ isPassing: true });
  });
});

describe("GitLab says of a merge request", () => {
  const request = {
    iid: 4,
    web_url: "https://gitlab.test/acme/app/-/merge_requests/4",
    title: "Draft: Do it",
    description: "Done.",
    state: "opened",
    draft: true,
    author: { id: 7, username: "ada" },
    labels: ["bug"],
    source_branch: "longhaul/a",
    source_project_id: 1,
    target_branch: "main",
    target_project_id: 1,
    sha: "c1",
    has_conflicts: false,
    detailed_merge_status: "draft_status",
    head_pipeline: { id: 9, sha: "c1", source: "push" },
  } satisfies Some<ExpandedMergeRequestSchema>;
  const read = async (more: object) =>
    gitlabPullRequest(await callTo("gitlab", { "/merge_requests/4": { ...request, ...more } }), 4);

  it("its state, and a conflict only once it is computed", async () => {
    expect(await read({})).toMatchObject({
      number: 4,
      state: "open",
      isDraft: true,
      author: ada,
      head: { branch: "longhaul/a", commit: "c1", isHere: true },
      merge: "clean",
      isQueued: false,
      mergeCommit: undefined,
    });
    expect(await read({ has_conflicts: true })).toMatchObject({ merge: "conflict" });
    expect(await read({ has_conflicts: true, detailed_merge_status: "checking" })).toMatchObject({
      merge: "unknown",
    });
    expect(await read({ detailed_merge_status: "a new word" })).toMatchObject({ merge: "clean" });
    expect(await read({ state: "merged", source_project_id: null })).toMatchObject({
      state: "merged",
      head: { isHere: undefined },
    });
  });

  it("checks of the pipeline of its head or of its merged result, and of no older one", async () => {
    const job = (id: number, name: string, status: JobSchema["status"], mayFail: boolean) =>
      ({
        id,
        name,
        status,
        allow_failure: mayFail,
        web_url: `https://gitlab.test/${id}`,
      }) satisfies Some<JobSchema>;
    const jobs = [
      job(1, "unit", "failed", false),
      job(2, "lint", "failed", true),
      job(3, "go", "manual", true),
    ];
    const checks = async (more: object) => {
      const call = await callTo("gitlab", {
        "/merge_requests/4": { ...request, ...more },
        "/pipelines/9/jobs": jobs,
      });
      return gitlabChecks(call, { number: 4 });
    };
    expect(await checks({})).toMatchObject([
      { name: "unit", state: "failed", isRequired: true, job: "1" },
      { name: "lint", state: "failed", isRequired: false },
      { name: "go", state: "held", isRequired: false },
    ]);
    const merged = { head_pipeline: { id: 9, sha: "m1", source: "merge_request_event" } };
    expect(await checks(merged)).toHaveLength(3);
    expect(await checks({ head_pipeline: { id: 9, sha: "c0", source: "push" } })).toEqual([]);
    expect(await checks({ head_pipeline: null })).toEqual([]);
  });

  it("threads that can be resolved, without what the forge itself wrote", async () => {
    const note = (id: number, more: object) => ({
      id,
      author: { id: 7, username: "ada" },
      body: `Note ${id}`,
      resolvable: true,
      resolved: false,
      updated_at: "2026-11-27T06:00:00Z",
      position: { new_path: "a.ts", new_line: 3 },
      ...more,
    });
    const call = await callTo("gitlab", {
      "/merge_requests/4/discussions": [
        { id: "d1", notes: [note(1, {}), note(2, { system: true }), note(3, {})] },
        { id: "d2", notes: [note(4, { resolved: true })] },
        { id: "d3", notes: [note(5, { resolvable: false })] },
        { id: "d4", notes: [note(6, { system: true })] },
      ],
    });
    const threads = await gitlabThreads(call, 4);
    expect(threads).toMatchObject([
      { id: "d1", path: "a.ts", line: 3, isResolved: false },
      { id: "d2", isResolved: true },
    ]);
    expect(threads[0]?.comments.map(({ id }) => id)).toEqual([1, 3]);
  });

  it("that a member may write from Developer on, if active", async () => {
    const may = async (answer: unknown) =>
      gitlabMayWrite(await callTo("gitlab", { "/members/all/7": answer }), ada);
    expect(await may({ access_level: 30, state: "active" })).toBe(true);
    expect(await may({ access_level: 20, state: "active" })).toBe(false);
    expect(await may({ access_level: 40, state: "blocked" })).toBe(false);
    expect(await may(undefined)).toBe(false);
    await expect(may(500)).rejects.toMatchObject({ isPassing: true });
  });
});
