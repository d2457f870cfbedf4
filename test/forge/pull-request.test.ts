import { expect, it } from "vitest";
import { parseForge } from "../../activities/config/git-settings.ts";
import { openPullRequest, type PullRequest } from "../../activities/forge/open-pull-request.ts";
import { describeOnGitea } from "../support/gitea/use-gitea.ts";
import type { GiteaServer, Person } from "../support/gitea/server.ts";

interface Shown {
  readonly number: number;
  readonly title: string;
  readonly body: string;
  readonly draft: boolean;
  readonly state: string;
  readonly base: { readonly ref: string };
  readonly user: { readonly login: string };
}

describeOnGitea("a pull request on a real Gitea", (gitea) => {
  const callAs = (person: Person, repository: string, server: GiteaServer = gitea()) => ({
    forge:
      parseForge(`${server.url}/${repository.replace("/repos/", "")}.git`, "gitea") ??
      expect.fail("no forge"),
    token: server.tokens[person],
    signal: AbortSignal.timeout(60_000),
  });

  /** A repository with one commit on a session's branch, and the order for its pull request. */
  async function withBranch(name: string, branch = "longhaul/a") {
    const repository = await gitea().makeRepository(name);
    const commit = await gitea().commit("bot", repository, {
      branch,
      from: "main",
      path: "one",
      text: "1\n",
    });
    const request: PullRequest = {
      session: "a",
      branch,
      commit,
      into: "main",
      title: "Do it",
      body: "Done.",
      draft: false,
    };
    const shown = (number = 1) => gitea().made<Shown>("dev", "GET", `${repository}/pulls/${number}`);
    const edit = (fields: object) => gitea().made("dev", "PATCH", `${repository}/pulls/1`, fields);
    return { repository, commit, request, shown, edit, call: callAs("bot", repository) };
  }

  it("is opened once by the token's owner, and only our block of its text is written again", async () => {
    const { call, request, shown } = await withBranch("once");
    const first = await openPullRequest(call, request);
    expect(first).toMatchObject({ number: 1, created: true, isOwn: true });
    expect(first.url).toBe(`${gitea().url}/owner/once/pulls/1`);
    expect(await openPullRequest(call, { ...request, body: "More." })).toEqual({ ...first, created: false });
    expect(await shown()).toMatchObject({
      title: "Do it",
      draft: false,
      user: { login: "bot" },
      body: expect.stringMatching(
        /^<!-- longhaul a [0-9a-f]{16} -->\nMore\.\n<!-- \/longhaul -->$/,
      ) as string,
    });
  });

  it("is a draft by its title, and stays what a person made of it", async () => {
    const { call, request, shown, edit, repository } = await withBranch("kept");
    await gitea().commit("dev", repository, { branch: "next", from: "main", path: "two", text: "2\n" });
    await openPullRequest(call, { ...request, draft: true });
    const opened = await shown();
    expect(opened).toMatchObject({ title: "WIP: Do it", draft: true });
    await edit({ title: "Mine", base: "next", body: `Fixes #7.\n\n${opened.body}\n\n- [x] read` });
    expect(await openPullRequest(call, { ...request, body: "More." })).toMatchObject({
      number: 1,
      created: false,
    });
    const now = await shown();
    expect(now).toMatchObject({ title: "Mine", draft: false, base: { ref: "next" } });
    expect(now.body).toMatch(/^Fixes #7\.\n\n<!-- longhaul a .*More\..*- \[x\] read$/s);
    await edit({ body: "All mine." });
    await openPullRequest(call, { ...request, body: "Most." });
    expect((await shown()).body).toBe("All mine.");
  });

  it("stays closed if a person closed it, and follows a merge by a new one", async () => {
    const { call, request, edit, repository } = await withBranch("ended");
    await openPullRequest(call, request);
    await edit({ state: "closed" });
    expect(await openPullRequest(call, request)).toMatchObject({ number: 1, state: "closed" });
    await edit({ state: "open" });
    await gitea().made("owner", "POST", `${repository}/pulls/1/merge`, { Do: "merge" });
    expect(await openPullRequest(call, request)).toMatchObject({ number: 1, state: "merged" });
    const commit = await gitea().commit("bot", repository, {
      branch: request.branch,
      path: "two",
      text: "2\n",
    });
    expect(await openPullRequest(call, { ...request, commit })).toMatchObject({ number: 2, created: true });
  });

  it("is never that of a fork whose branch has the same name", async () => {
    const { call, request, repository, commit } = await withBranch("forked");
    await gitea().made("stranger", "POST", `${repository}/forks`, {});
    const fork = "/repos/stranger/forked";
    expect(await gitea().made("stranger", "GET", `${fork}/branches/longhaul%2Fa`)).toMatchObject({
      commit: { id: commit },
    });
    const theirs = { head: "stranger:longhaul/a", base: "main", title: "Theirs", body: "" };
    await gitea().made("stranger", "POST", `${repository}/pulls`, theirs);
    expect(await openPullRequest(call, request)).toMatchObject({ number: 2, created: true });
    expect(await openPullRequest(call, request)).toMatchObject({ number: 2, created: false });
  });

  it("is found if a person opened it, and the server refuses a second one with the same target", async () => {
    const { call, request, repository } = await withBranch("theirs");
    const theirs = { head: request.branch, base: "main", title: "Theirs", body: "Mine." };
    await gitea().made("dev", "POST", `${repository}/pulls`, theirs);
    expect(await gitea().ask("bot", "POST", `${repository}/pulls`, theirs)).toMatchObject({ status: 409 });
    const found = await openPullRequest(call, request);
    expect(found).toMatchObject({ number: 1, created: false, isOwn: false });
    const all = await gitea().made<Shown[]>("dev", "GET", `${repository}/pulls?state=all`);
    expect(all).toMatchObject([{ title: "Theirs", body: "Mine." }]);
  });

  it("is found under the repository's present name after a rename and after it was given away", async () => {
    const { call, request, repository } = await withBranch("renamed");
    await openPullRequest(call, request);
    await gitea().made("owner", "PATCH", repository, { name: "present" });
    const moved = await gitea().ask("bot", "GET", `${repository}/pulls`);
    expect([moved.status, moved.headers.get("location")]).toEqual([301, "/api/v1/repos/owner/present/pulls"]);
    expect(await openPullRequest(call, { ...request, body: "More." })).toMatchObject({
      number: 1,
      created: false,
      url: `${gitea().url}/owner/present/pulls/1`,
    });
    await gitea().made("owner", "POST", "/repos/owner/present/transfer", { new_owner: "dev" });
    await gitea().ask("dev", "POST", "/repos/owner/present/transfer/accept");
    expect(await openPullRequest(call, request)).toMatchObject({ number: 1, created: false });
  });

  it("is refused with the server's own words", async () => {
    const { call, request, repository } = await withBranch("refused");
    await expect(openPullRequest({ ...call, token: "wrong" }, request)).rejects.toMatchObject({
      status: 401,
      isPassing: false,
    });
    await expect(openPullRequest(call, { ...request, into: "gone" })).rejects.toMatchObject({ status: 404 });
    await expect(openPullRequest(call, { ...request, branch: "main" })).rejects.toThrow(
      /422.*no changes between the head and the base/,
    );
    await gitea().made("owner", "PATCH", repository, { archived: true });
    await expect(openPullRequest(call, request)).rejects.toMatchObject({ status: 423, isPassing: false });
  });
});
