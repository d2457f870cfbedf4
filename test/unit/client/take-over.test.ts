import { createServer } from "node:http";
import { describe, expect, it } from "vitest";
import type { RunFlags } from "../../../client/sessions/run-flags.ts";
import { takeOverPull } from "../../../client/setup/pull-request-check.ts";
import { listen } from "../../support/listen.ts";

const token = { LONGHAUL_GIT_TOKEN: "secret" };
const here = { id: 5, full_name: "acme/app" };

/** One pull request, in the form of each forge. */
async function forge(more: object = {}) {
  const github = {
    number: 7,
    html_url: "https://forge.test/acme/app/pull/7",
    title: "Do it",
    body: "",
    state: "open",
    merged: false,
    mergeable: true,
    user: null,
    labels: [],
    head: { ref: "feature/x", sha: "c1", repo: here },
    base: { ref: "main", sha: "b1", repo: here },
    merge_commit_sha: null,
    ...more,
  };
  const gitlab = {
    iid: 7,
    web_url: "https://forge.test/acme/app/-/merge_requests/7",
    title: "Do it",
    description: "",
    state: "opened",
    author: null,
    source_branch: "feature/x",
    source_project_id: 5,
    target_branch: "main",
    target_project_id: 5,
    sha: "c1",
    ...more,
  };
  const answers: Readonly<Record<string, unknown>> = {
    "/api/v3/repos/acme/app/pulls/7": github,
    "/api/v4/projects/acme%2Fapp/merge_requests/7": gitlab,
    "/api/graphql": { data: { repository: { pullRequest: { isInMergeQueue: false } } } },
  };
  const server = createServer((asked, answer) => {
    asked.resume();
    const body = answers[asked.url ?? ""];
    const isRight = asked.headers.authorization === "Bearer secret";
    const status = body === undefined ? 404 : 200;
    answer.writeHead(isRight ? status : 401, { "content-type": "application/json" });
    answer.end(JSON.stringify(isRight && body !== undefined ? body : { message: "no" }));
  });
  return `http://127.0.0.1:${await listen(server)}/acme/app`;
}

const flags: RunFlags = { setup: true };

describe("a pull request that a session takes over", () => {
  it.each(["pull/7", "-/merge_requests/7/diffs"])("is worked on on its own branch: %s", async (path) => {
    const origin = await forge();
    const taken = await takeOverPull(`${origin}/${path}`, { ...flags, follow: true }, token);
    expect(taken.flags).toMatchObject({
      repo: `${origin}.git`,
      ref: "refs/heads/feature/x",
      branch: "feature/x",
      push: "end",
      pr: "ready",
      follow: true,
    });
    expect(taken.pull.number).toBe(7);
  });

  it.each([
    ["pull/7", { state: "closed" }, 5, "is closed"],
    ["pull/7", { state: "closed", merged: true }, 5, "is merged"],
    ["-/merge_requests/7", { state: "merged" }, 5, "is merged"],
    ["pull/7", { head: { ref: "x", sha: "c1", repo: { full_name: "eve/app" } } }, 2, "is in a fork"],
    ["pull/7", { head: { ref: "x", sha: "c1", repo: null } }, 2, "is gone"],
    ["-/merge_requests/7", { source_project_id: 9 }, 2, "is in a fork"],
    ["pull/7", { head: { ref: "a{id}", sha: "c1", repo: here } }, 2, "has a name"],
    ["pull/8", {}, 4, "cannot be read"],
    ["issues/7", {}, 2, "--pull: The address of a pull request"],
  ])("is refused before anything starts: %s %j", async (path, more, exitCode, message) => {
    const origin = await forge(more);
    await expect(takeOverPull(`${origin}/${path}`, flags, token)).rejects.toMatchObject({
      exitCode,
      message: expect.stringContaining(message) as string,
    });
  });

  it.each([
    [{ repo: "https://github.com/acme/app" }, "--repo"],
    [{ ref: "main" }, "--ref"],
    [{ branch: "other" }, "--branch"],
    [{ workspace: "." }, "--workspace"],
    [{ pr: "draft" }, "--pr"],
    [{ push: "never" }, "--push never"],
  ] as const)("is not taken over with %j", async (more, named) => {
    await expect(
      takeOverPull("https://github.com/acme/app/pull/7", { ...flags, ...more }, token),
    ).rejects.toMatchObject({ exitCode: 2, message: expect.stringContaining(named) as string });
  });

  it("needs a token, and a forge that answers", async () => {
    await expect(takeOverPull(`${await forge()}/pull/7`, flags, {})).rejects.toMatchObject({
      exitCode: 4,
      fix: expect.stringContaining("LONGHAUL_GIT_TOKEN_127_0_0_1") as string,
    });
    await expect(takeOverPull("http://127.0.0.1:1/acme/app/pull/7", flags, token)).rejects.toMatchObject({
      exitCode: 4,
    });
  });
});
