/** Sessions that take over a person's pull request on a real Gitea: they push to its branch, and to nothing else. */
import { expect, it, onTestFinished } from "vitest";
import { gitConfigSchema } from "../../activities/config/git-settings.ts";
import { FOLLOW_SIGNALS, followWorkflowId } from "../../activities/contract/follow.ts";
import { createGitAccess } from "../../activities/git/git-access.ts";
import { createSanitizer } from "../../activities/redaction/sanitizer.ts";
import { findFollow, listFollowRounds } from "../../activities/store/follows.ts";
import { stopFollowing } from "../../client/follow/follow-pull-request.ts";
import { sessionGit, type RunFlags } from "../../client/sessions/run-flags.ts";
import { takeOverPull } from "../../client/setup/pull-request-check.ts";
import { startAgent } from "../support/agent-harness.ts";
import { clientServices, sessionRow } from "../support/client-services.ts";
import { emptyFolder } from "../support/empty-folder.ts";
import { eventually } from "../support/eventually.ts";
import { describeOnGitea } from "../support/gitea/use-gitea.ts";
import { scriptedModel, text, type ModelScript } from "../support/scripted-model.ts";

interface Shown {
  readonly number: number;
  readonly title: string;
  readonly body: string;
  readonly state: string;
  readonly head: { readonly ref: string; readonly sha: string };
}

describeOnGitea("a pull request on a real Gitea is taken over", (gitea) => {
  /** A pull request of `dev`, and a worker that is `bot`. */
  async function stand(name: string) {
    const server = gitea();
    const repository = await server.makeRepository(name);
    const file = { path: "one", text: "1\n" };
    const theirs = await server.commit("dev", repository, { branch: "feature/x", from: "main", ...file });
    const made = { head: "feature/x", base: "main", title: "Add one", body: "By a person." };
    await server.made("dev", "POST", `${repository}/pulls`, made);
    const environment = {
      PATH: process.env["PATH"],
      LONGHAUL_GIT_TOKEN: server.tokens.bot,
      LONGHAUL_GIT_FOLDER: emptyFolder(),
    };
    const sanitizer = createSanitizer([server.tokens.bot]);
    const agent = await startAgent({ git: createGitAccess(environment), sanitizer, followPace: 500 });
    onTestFinished(() => agent.close());
    const take = (flags: Partial<RunFlags> = {}) =>
      takeOverPull(`${server.url}/owner/${name}/pulls/1`, { setup: true, ...flags }, environment);
    const start = async (script: ModelScript, flags: Partial<RunFlags> = {}) => {
      const taken = await take(flags);
      const git = sessionGit(taken.flags, gitConfigSchema.parse({})) ?? expect.fail("no repository");
      const config = { repository: { ...git, forge: taken.kind, pull: taken.pull } };
      return agent.start(script, { task: "Go on with it.", config });
    };
    const pulls = () => server.made<Shown[]>("dev", "GET", `${repository}/pulls?state=all`);
    const branches = async () => {
      const all = await server.made<{ readonly name: string }[]>("dev", "GET", `${repository}/branches`);
      return all.map(({ name: branch }) => branch).toSorted();
    };
    return { server, repository, theirs, agent, take, start, pulls, branches };
  }

  const commits = "echo 2 > two; git add -A; git commit -qm Two";

  it("works on top of what is there, and opens no other one; then it is followed", async () => {
    const { server, repository, theirs, agent, start, pulls, branches } = await stand("taken");
    const session = await start(
      scriptedModel()
        .calls("bash", { command: `git log --format=%an:%s -1; ${commits}` })
        .says("Two is there.")
        .calls("bash", { command: "echo 3 > two; git commit -qam Three" })
        .says("Mended."),
      { follow: true },
    );
    expect(await session.result()).toMatchObject({ status: "completed", delivery: "done" });
    const [shown, ...others] = await pulls();
    expect(others).toEqual([]);
    expect(shown).toMatchObject({ title: "Add one", body: "By a person.", head: { ref: "feature/x" } });
    const head = shown?.head.sha ?? "";
    const { parents } = await server.made<{ readonly parents: { readonly sha: string }[] }>(
      "dev",
      "GET",
      `${repository}/git/commits/${head}`,
    );
    expect(parents).toMatchObject([{ sha: theirs }]);
    expect(await branches()).toEqual(["feature/x", "main"]);
    expect(await session.dataOf("git:pull-request")).toMatchObject([{ number: 1, created: false }]);

    const follower = agent.client.workflow.getHandle(followWorkflowId(session.id));
    await server.made("dev", "POST", `${repository}/statuses/${head}`, { context: "ci", state: "failure" });
    await follower.signal(FOLLOW_SIGNALS.woken);
    await eventually("the check is mended", async () => (await pulls())[0]?.head.sha !== head);
    expect(await listFollowRounds(agent.database.store.db, session.id)).toMatchObject([{ number: 1, head }]);
    await stopFollowing(clientServices(agent), await sessionRow(agent, session.id));
  });

  it("is followed also if nothing was to be done at first, from where it began", async () => {
    const { server, repository, theirs, agent, start, pulls } = await stand("nothing");
    const session = await start(
      scriptedModel().says("All is well.").calls("bash", { command: commits }).says("Mended."),
      { follow: true },
    );
    expect(await session.result()).toMatchObject({ status: "completed" });
    expect((await pulls())[0]?.head.sha).toBe(theirs);
    const follower = agent.client.workflow.getHandle(followWorkflowId(session.id));
    await server.made("dev", "POST", `${repository}/statuses/${theirs}`, { context: "ci", state: "failure" });
    await follower.signal(FOLLOW_SIGNALS.woken);
    await eventually("the check is mended", async () => (await pulls())[0]?.head.sha !== theirs);
    // Nothing is done about a commit that is not the session's.
    await server.commit("dev", repository, { branch: "feature/x", path: "three", text: "3\n" });
    await follower.signal(FOLLOW_SIGNALS.woken);
    await eventually("it waits", async () => {
      const row = await findFollow(agent.database.store.db, session.id);
      return /somebody else has pushed/.test(row?.reason ?? "");
    });
    await stopFollowing(clientServices(agent), await sessionRow(agent, session.id));
  });

  it("never goes over a person's commit: neither a new one nor the one that it began with", async () => {
    const { server, repository, theirs, start, pulls } = await stand("foreign");
    let newer = "";
    const meanwhile = await start(
      scriptedModel()
        .calls("bash", { command: commits })
        .replies(async () => {
          newer = await server.commit("dev", repository, { branch: "feature/x", path: "three", text: "3\n" });
          return { parts: [text("Done.")] };
        }),
    );
    expect(await meanwhile.result()).toMatchObject({ status: "completed", delivery: "refused" });
    expect(await meanwhile.dataOf("git:refused")).toMatchObject([
      { reason: expect.stringContaining("has commits that this session did not make") as string },
    ]);
    expect((await pulls())[0]?.head.sha).toBe(newer);

    const amending = await start(
      scriptedModel().calls("bash", { command: "git commit -q --amend -m Mine" }).says("Done."),
    );
    expect(await amending.result()).toMatchObject({ status: "completed", delivery: "refused" });
    expect((await pulls())[0]?.head.sha).toBe(newer);
    expect(newer).not.toBe(theirs);
  });

  it("gets nothing once it is closed; a fork's, or a closed one, is refused at once", async () => {
    const { server, repository, theirs, start, take, pulls } = await stand("closed");
    const session = await start(
      scriptedModel()
        .calls("bash", { command: commits })
        .replies(async () => {
          await server.made("dev", "PATCH", `${repository}/pulls/1`, { state: "closed" });
          return { parts: [text("Done.")] };
        }),
    );
    expect(await session.result()).toMatchObject({ status: "completed", delivery: "refused" });
    expect(await session.dataOf("git:refused")).toMatchObject([{ reason: "its pull request is closed" }]);
    expect(await pulls()).toMatchObject([{ head: { sha: theirs } }]);
    await expect(take()).rejects.toMatchObject({ exitCode: 5 });

    await server.made("stranger", "POST", `${repository}/forks`, {});
    const fork = "/repos/stranger/closed";
    await server.commit("stranger", fork, { branch: "theirs", from: "main", path: "x", text: "x\n" });
    const order = { head: "stranger:theirs", base: "main", title: "From a fork" };
    const { number } = await server.made<Shown>("stranger", "POST", `${repository}/pulls`, order);
    await expect(
      takeOverPull(
        `${server.url}/owner/closed/pulls/${number}`,
        { setup: true },
        { LONGHAUL_GIT_TOKEN: server.tokens.bot },
      ),
    ).rejects.toMatchObject({
      exitCode: 2,
      message: expect.stringContaining("is in a fork") as string,
      fix: expect.stringContaining("longhaul review") as string,
    });
  });
});
