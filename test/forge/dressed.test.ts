import { expect, it } from "vitest";
import { createGitAccess } from "../../activities/git/git-access.ts";
import { operatorPolicySchema } from "../../activities/config/operator-policy.ts";
import { createSanitizer } from "../../activities/redaction/sanitizer.ts";
import { readStatus } from "../../client/sessions/session-status.ts";
import { startAgent } from "../support/agent-harness.ts";
import { clientServices, sessionRow } from "../support/client-services.ts";
import { emptyFolder } from "../support/empty-folder.ts";
import { describeOnGitea } from "../support/gitea/use-gitea.ts";
import { onRepository } from "../support/remotes.ts";
import { scriptedModel } from "../support/scripted-model.ts";

interface Shown {
  readonly body: string;
  readonly labels: readonly { readonly name: string }[];
  readonly assignees: readonly { readonly login: string }[] | null;
  readonly requested_reviewers: readonly { readonly login: string }[] | null;
}

describeOnGitea("what a pull request gets on a real Gitea", (gitea) => {
  it("has its template, issue, labels, reviewers, assignee, and remarks for others (C9, C11)", async () => {
    const server = gitea();
    const token = server.tokens.bot;
    const repository = await server.makeRepository("dressed");
    const form = "## What\n<!-- Say it -->\n- [ ] tested\n";
    await server.commit("owner", repository, {
      branch: "main",
      path: ".gitea/PULL_REQUEST_TEMPLATE.md",
      text: form,
    });
    await server.made("owner", "POST", `${repository}/labels`, { name: "agent", color: "#00aabb" });
    const issue = await server.made<{ readonly number: number; readonly html_url: string }>(
      "dev",
      "POST",
      `${repository}/issues`,
      { title: "Add one" },
    );
    const git = createGitAccess({
      PATH: process.env["PATH"],
      LONGHAUL_GIT_TOKEN: token,
      LONGHAUL_GIT_FOLDER: emptyFolder(),
    });
    const policy = operatorPolicySchema.parse({ people: { ann: { login: "dev" } } });
    const agent = await startAgent({ git, policy, sanitizer: createSanitizer([token]) });
    try {
      const script = scriptedModel()
        .calls("bash", { command: "seq 9 > one; git add -A; git commit -qm One" })
        .says("## What\nOne. Fixes #77, thanks @dev.\n- [x] tested");
      const { repository: base } = onRepository(`${server.url}/owner/dressed.git`, {
        push: "end",
        pr: "ready",
      });
      const pullRequest = {
        ...base.pullRequest,
        labels: ["agent", "none"],
        reviewers: ["owner", "nobody-here"],
        assignOwner: true,
        warnLines: 5,
      };
      const task = `Do ${issue.html_url} please`;
      const session = await agent.start(script, {
        task,
        owner: "ann",
        config: { repository: { ...base, pullRequest } },
      });
      expect(await session.result()).toMatchObject({ status: "completed", delivery: "done" });
      expect(JSON.stringify(session.model.requests[0])).toContain("<!-- Say it -->");
      const shown = await server.made<Shown>("dev", "GET", `${repository}/pulls/2`);
      expect(shown.labels.map(({ name }) => name)).toEqual(["agent"]);
      expect(shown.assignees?.map(({ login }) => login)).toEqual(["dev"]);
      expect(shown.requested_reviewers?.map(({ login }) => login)).toEqual(["dev"]);
      expect(shown.body).toContain(
        `- [x] tested\n\nCloses #${issue.number}\n\n**Large:** it changes 9 lines, more than 5.`,
      );
      expect(shown.body).not.toMatch(/Fixes #77|@dev/);
      const { git: status } = await readStatus(clientServices(agent), await sessionRow(agent, session.id));
      expect(status?.remarks).toEqual([
        "not set: the label none (the repository has no label none)",
        expect.stringMatching(/^not set: the reviewer nobody-here \(.*answered 4\d\d/) as string,
      ]);
      expect(await session.dataOf("git:pull-request")).toMatchObject([{ remarks: status?.remarks }]);
      await server.made("owner", "POST", `${repository}/pulls/2/merge`, { Do: "merge" });
      await expect
        .poll(() => server.made("dev", "GET", `${repository}/issues/${issue.number}`), { timeout: 30_000 })
        .toMatchObject({ state: "closed" });
    } finally {
      await agent.close();
    }
  });
});
