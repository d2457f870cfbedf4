import { expect, it } from "vitest";
import { parseForge } from "../../activities/config/git-settings.ts";
import { giteaChecks, giteaMayWrite, giteaPullRequest } from "../../activities/forge/gitea-facts.ts";
import { giteaReviews, giteaThreads } from "../../activities/forge/gitea-talk.ts";
import { eventually } from "../support/eventually.ts";
import { startRunner } from "../support/gitea/runner.ts";
import type { Person } from "../support/gitea/server.ts";
import { describeOnGitea } from "../support/gitea/use-gitea.ts";

const WORKFLOW = `name: ci
on: [pull_request]
jobs:
  test:
    runs-on: ubuntu-latest
    steps:
      - run: npm test
`;

describeOnGitea("a real Gitea says of a pull request", (gitea) => {
  const callAs = (person: Person, name: string) => ({
    forge: parseForge(`${gitea().url}/owner/${name}.git`, "gitea") ?? expect.fail("no forge"),
    token: gitea().tokens[person],
    signal: AbortSignal.timeout(60_000),
  });

  /** A repository with a pull request of the bot. */
  async function withPull(name: string, title = "Do it", options: { readonly private?: boolean } = {}) {
    const repository = await gitea().makeRepository(name, options);
    const change = { branch: "longhaul/a", path: "README.md", text: "One\nTwo\nThree\n" };
    const commit = await gitea().commit("bot", repository, { ...change, from: "main" });
    const fields = { head: "longhaul/a", base: "main", title, body: "Done." };
    await gitea().made("bot", "POST", `${repository}/pulls`, fields);
    return { repository, commit, call: callAs("bot", name), pull: `${repository}/pulls/1` };
  }

  it("its state, its head and its base", async () => {
    const { call, commit, pull } = await withPull("state");
    await eventually("it is computed", async () => (await giteaPullRequest(call, 1)).merge === "clean");
    expect(await giteaPullRequest(call, 1)).toMatchObject({
      number: 1,
      title: "Do it",
      text: "Done.",
      state: "open",
      isDraft: false,
      author: { login: "bot" },
      labels: [],
      head: { branch: "longhaul/a", commit, isHere: true },
      base: { branch: "main" },
    });
    await gitea().made("dev", "PATCH", pull, { state: "closed" });
    expect(await giteaPullRequest(call, 1)).toMatchObject({ state: "closed" });
    await gitea().made("dev", "PATCH", pull, { state: "open" });
    await gitea().made("owner", "POST", `${pull}/merge`, { Do: "squash" });
    expect(await giteaPullRequest(call, 1)).toMatchObject({ state: "merged" });
  });

  it("never that it conflicts: a draft and a conflict look alike", async () => {
    const draft = await withPull("draft", "WIP: Do it");
    expect(await giteaPullRequest(draft.call, 1)).toMatchObject({ isDraft: true, merge: "unknown" });
    const { call, repository, pull } = await withPull("conflict");
    await gitea().commit("dev", repository, { branch: "main", path: "README.md", text: "Other\n" });
    await eventually("the conflict is seen", async () => {
      const { mergeable } = await gitea().made<{ readonly mergeable: boolean }>("bot", "GET", pull);
      return !mergeable;
    });
    expect(await giteaPullRequest(call, 1)).toMatchObject({ isDraft: false, merge: "unknown" });
    expect(await gitea().ask("bot", "POST", `${pull}/update`)).toMatchObject({ status: 409 });
  });

  it("the head that was pushed, and the branch of a fork that is gone", async () => {
    const { call, repository, pull } = await withPull("moved");
    const newer = await gitea().commit("bot", repository, { branch: "longhaul/a", path: "two", text: "2\n" });
    await eventually("the push is seen", async () => {
      const { head } = await giteaPullRequest(call, 1);
      return head.commit === newer;
    });
    await gitea().commit("dev", repository, { branch: "main", path: "three", text: "3\n" });
    await eventually(
      "it can be merged again",
      async () => (await giteaPullRequest(call, 1)).merge === "clean",
    );
    expect(await gitea().ask("bot", "POST", `${pull}/update?style=merge`)).toMatchObject({ status: 200 });
    await gitea().made("stranger", "POST", `${repository}/forks`, {});
    const fork = "/repos/stranger/moved";
    const theirs = { branch: "theirs", from: "main", path: "four", text: "4\n" };
    await gitea().commit("stranger", fork, theirs);
    const fields = { head: "stranger:theirs", base: "main", title: "Theirs", body: "" };
    await gitea().made("stranger", "POST", `${repository}/pulls`, fields);
    expect((await giteaPullRequest(call, 2)).head).toMatchObject({ branch: "theirs", isHere: false });
    await gitea().made("owner", "DELETE", fork);
    expect((await giteaPullRequest(call, 2)).head).toMatchObject({ isHere: undefined });
  });

  it("checks of statuses, which are required and which are missing", async () => {
    const { call, repository, commit } = await withPull("statuses");
    await gitea().made("owner", "POST", `${repository}/branch_protections`, {
      rule_name: "main",
      enable_status_check: true,
      status_check_contexts: ["unit*", "never"],
    });
    // What the bot may not ask, as it has no administrator's rights.
    expect(await gitea().ask("bot", "GET", `${repository}/branch_protections`)).toMatchObject({
      status: 403,
    });
    for (const [context, state] of [
      ["unit / linux", "failure"],
      ["lint", "success"],
      ["docs", "pending"],
    ])
      await gitea().made("bot", "POST", `${repository}/statuses/${commit}`, {
        context,
        state,
        target_url: "https://ci.example/1",
      });
    const checks = await giteaChecks(call, await giteaPullRequest(call, 1));
    const inOrder = checks.toSorted((one, other) => one.name.localeCompare(other.name));
    expect(inOrder).toMatchObject([
      { name: "docs", state: "running", isRequired: false, url: "https://ci.example/1" },
      { name: "lint", state: "good", isRequired: false },
      { name: "never", state: "missing", isRequired: true },
      { name: "unit / linux", state: "failed", isRequired: true },
    ]);
  });

  it("checks of Actions: they run until a runner has ended them, and only the newest counts", async () => {
    const { repository } = await withPull("actions", "Do it", { private: true });
    const call = callAs("bot", "actions");
    const branch = "longhaul/a";
    const path = ".gitea/workflows/ci.yaml";
    await gitea().commit("bot", repository, { branch, path, text: WORKFLOW });
    const states = async () => {
      const checks = await giteaChecks(call, await giteaPullRequest(call, 1));
      return checks.map(({ name, state }) => `${name}: ${state}`);
    };
    const name = "ci / test (pull_request)";
    await eventually("the job waits", async () => (await states()).length === 1);
    expect(await states()).toEqual([`${name}: running`]);
    const runner = await startRunner(gitea());
    const take = async () => {
      const found = await eventually("a job is given", () => runner.take());
      return found ?? expect.fail("no job");
    };
    const first = await take();
    expect(await states()).toEqual([`${name}: running`]);
    await runner.finish(first, "FAILURE", ["npm test", "1 failed"]);
    await eventually("it failed", async () => (await states()).includes(`${name}: failed`));
    const [check] = await giteaChecks(call, await giteaPullRequest(call, 1));
    expect(check?.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/owner\/actions\/actions\/runs\/\d+/);
    await gitea().commit("bot", repository, { branch, path: "two", text: "2\n" });
    await runner.finish(await take(), "SUCCESS", ["npm test", "all passed"]);
    await eventually("it passed", async () => (await states()).includes(`${name}: good`));
    expect(await states()).toEqual([`${name}: good`]);
  });

  it("reviews and their threads, with the last word", async () => {
    const { call, repository, pull, commit } = await withPull("reviews");
    const comment = (body: string, position = 2) => ({ path: "README.md", new_position: position, body });
    await gitea().made("dev", "POST", `${pull}/reviews`, {
      event: "REQUEST_CHANGES",
      body: "Please.",
      comments: [comment("Why two?"), comment("And three?", 3)],
    });
    await gitea().made("bot", "POST", `${pull}/reviews`, {
      event: "COMMENT",
      comments: [comment("Because.")],
    });
    // Not sent yet: nobody else sees it.
    await gitea().made("dev", "POST", `${pull}/reviews`, {
      event: "PENDING",
      body: "Not yet.",
      comments: [comment("Hm.", 1)],
    });
    await gitea().made("owner", "POST", `${pull}/requested_reviewers`, { reviewers: ["owner"] });
    expect(await gitea().ask("bot", "POST", `${pull}/reviews`, { event: "APPROVED" })).toMatchObject({
      status: 422,
    });
    const threads = await giteaThreads(call, 1);
    expect(await giteaReviews(call, 1)).toMatchObject([
      { author: { login: "dev" }, verdict: "changes-requested", text: "Please.", commit },
      { author: { login: "bot" }, verdict: "commented", commit },
    ]);
    expect(threads.map(({ path, line, isResolved }) => ({ path, line, isResolved }))).toEqual([
      { path: "README.md", line: 2, isResolved: false },
      { path: "README.md", line: 3, isResolved: false },
    ]);
    expect(threads.map(({ comments }) => comments.at(-1))).toMatchObject([
      { author: { login: "bot" }, text: "Because." },
      { author: { login: "dev" }, text: "And three?" },
    ]);
    expect(repository).toBe("/repos/owner/reviews");
  });

  it("who may write, by an id, also to one who is no administrator", async () => {
    const { call, repository } = await withPull("people");
    const idOf = async (person: Person) =>
      gitea()
        .made<{ readonly id: number }>(person, "GET", "/user")
        .then(({ id }) => ({ id }));
    expect(await gitea().ask("bot", "GET", `${repository}/collaborators/dev/permission`)).toMatchObject({
      status: 403,
    });
    for (const person of ["owner", "bot", "dev"] as const)
      expect(await giteaMayWrite(call, await idOf(person))).toBe(true);
    expect(await giteaMayWrite(call, await idOf("stranger"))).toBe(false);
    await gitea().made("owner", "PUT", `${repository}/collaborators/stranger`, { permission: "read" });
    expect(await giteaMayWrite(call, await idOf("stranger"))).toBe(false);
  });

  it("the same to people: its page has the styles and scripts that were built", async () => {
    await withPull("page");
    const page = await fetch(`${gitea().url}/owner/page/pulls/1`).then((answer) => answer.text());
    expect(page).toContain("Do it");
    const parts = [...page.matchAll(/(?:href|src)="(\/assets\/(?:css|js)\/[^"]+)"/g)].map(([, path]) => path);
    expect(parts.length).toBeGreaterThan(1);
    for (const path of parts) {
      const answer = await fetch(`${gitea().url}${path}`);
      expect([path, answer.status]).toEqual([path, 200]);
      expect((await answer.text()).length).toBeGreaterThan(1_000);
    }
  });

  it("nothing that saves a call or tells a limit: no ETag, no rate", async () => {
    const { pull } = await withPull("headers");
    const { headers } = await gitea().ask("bot", "GET", pull);
    expect([...headers.keys()].filter((name) => /etag|ratelimit|retry-after/i.test(name))).toEqual([]);
  });
});
