import { expect, it } from "vitest";
import { createGitAccess } from "../../activities/git/git-access.ts";
import { createSanitizer } from "../../activities/redaction/sanitizer.ts";
import { deliverSession } from "../../client/watch/deliver-session.ts";
import { startAgent } from "../support/agent-harness.ts";
import { checkSession } from "../support/checker/check-session.ts";
import { clientServices, quietOutput, sessionRow } from "../support/client-services.ts";
import { emptyFolder } from "../support/empty-folder.ts";
import { describeOnGitea } from "../support/gitea/use-gitea.ts";
import { onRepository } from "../support/remotes.ts";
import { scriptedModel } from "../support/scripted-model.ts";

interface Shown {
  readonly number: number;
  readonly title: string;
  readonly body: string;
  readonly draft: boolean;
  readonly html_url: string;
  readonly head: { readonly ref: string; readonly sha: string };
  readonly base: { readonly ref: string };
  readonly user: { readonly login: string };
}

describeOnGitea("a session on a real Gitea", (gitea) => {
  it("clones a private repository, pushes its branch and opens a draft; a later run updates it", async () => {
    const server = gitea();
    const token = server.tokens.bot;
    const repository = await server.makeRepository("app", { private: true });
    await server.commit("owner", repository, { branch: "main", path: "AGENTS.md", text: "Use tabs.\n" });
    const git = createGitAccess({
      PATH: process.env["PATH"],
      LONGHAUL_GIT_TOKEN: token,
      LONGHAUL_GIT_FOLDER: emptyFolder(),
    });
    const agent = await startAgent({ git, sanitizer: createSanitizer([token]) });
    try {
      const script = scriptedModel()
        .calls("bash", { command: "env; cat .git/config; echo 1 > one; git add -A; git commit -qm One" })
        .says("One is there.");
      const url = `${server.url}/owner/app.git`;
      const session = await agent.start(script, {
        task: "Add one\nas a file",
        config: onRepository(url, { push: "end", pr: "draft" }),
      });
      expect(await session.result()).toMatchObject({ status: "completed", delivery: "done" });
      const branch = `longhaul/${session.id}`;
      const [shown, ...others] = await server.made<Shown[]>("dev", "GET", `${repository}/pulls?state=all`);
      expect(others).toEqual([]);
      expect(shown).toMatchObject({
        number: 1,
        title: "WIP: Add one",
        draft: true,
        head: { ref: branch },
        base: { ref: "main" },
        user: { login: "bot" },
        body: expect.stringMatching(/One is there\.\n\nLonghaul-Session: /) as string,
      });
      const [pushed] = await session.dataOf("git:pushed");
      expect(pushed).toMatchObject({ branch, commit: shown?.head.sha, commits: 1 });
      expect(await session.dataOf("git:pull-request")).toMatchObject([
        { number: 1, url: shown?.html_url, created: true },
      ]);
      expect(JSON.stringify(session.model.requests[0])).toContain("Use tabs.");

      // A person makes it theirs; what is delivered afterwards leaves that alone.
      await server.made("dev", "PATCH", `${repository}/pulls/1`, { title: "Add the file one" });
      const row = await sessionRow(agent, session.id);
      const order = { push: true, pr: "ready" } as const;
      expect(await deliverSession(clientServices(agent), row, order, quietOutput([]))).toBe(0);
      const after = await server.made<Shown[]>("dev", "GET", `${repository}/pulls?state=all`);
      expect(after).toMatchObject([{ number: 1, title: "Add the file one", draft: false }]);
      const everything = [
        JSON.stringify(await session.events()),
        JSON.stringify(session.model.requests),
        JSON.stringify((await sessionRow(agent, session.id)).config),
        shown?.body,
      ].join("\n");
      expect(everything).not.toContain(token);
      expect(everything).not.toContain(
        Buffer.from(`x-access-token:${token}`).toString("base64").slice(0, 40),
      );
      await checkSession(agent, session);
    } finally {
      await agent.close();
    }
  });

  it("is told in the server's words why its branch may not be pushed to", async () => {
    const server = gitea();
    const token = server.tokens.bot;
    const repository = await server.makeRepository("protected");
    await server.made("owner", "POST", `${repository}/branch_protections`, {
      rule_name: "longhaul/*",
      enable_push: false,
    });
    const git = createGitAccess({
      PATH: process.env["PATH"],
      LONGHAUL_GIT_TOKEN: token,
      LONGHAUL_GIT_FOLDER: emptyFolder(),
    });
    const agent = await startAgent({ git, sanitizer: createSanitizer([token]) });
    try {
      const script = scriptedModel().calls("bash", { command: "echo 1 > one" }).says("Done.");
      const config = onRepository(`${server.url}/owner/protected.git`, { push: "end", forge: "gitea" });
      const session = await agent.start(script, { config });
      expect(await session.result()).toMatchObject({ status: "completed", delivery: "refused" });
      const [refused] = await session.dataOf("git:refused");
      expect(JSON.stringify(refused)).toMatch(/protected branch|pre-receive hook/);
    } finally {
      await agent.close();
    }
  });
});
