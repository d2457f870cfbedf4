import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { createGitAccess } from "../../activities/git/git-access.ts";
import { createSanitizer } from "../../activities/redaction/sanitizer.ts";
import { readWorkspace } from "../../activities/store/checkpoints.ts";
import { deliverSession } from "../../client/watch/deliver-session.ts";
import { CANARY, startAgent } from "../support/agent-harness.ts";
import { checkSession } from "../support/checker/check-session.ts";
import { clientServices, quietOutput, sessionRow } from "../support/client-services.ts";
import { createFakeForge } from "../support/fake-forge.ts";
import { createFakeGitHubApp } from "../support/fake-github-app.ts";
import { gitIn, makeRemote, serveGit, onRepository } from "../support/remotes.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { resultTexts } from "../support/stored.ts";
import { emptyFolder } from "../support/empty-folder.ts";

it("a GitHub App's token that expires before the push is replaced, and none is shown", async () => {
  let clock = new Date();
  const app = createFakeGitHubApp(() => clock);
  const place = makeRemote();
  const branches = () => gitIn(place.folder, "branch", "--format=%(refname:short)").split("\n");
  const forge = createFakeForge(app, branches);
  const server = await serveGit(place, app.takes, forge.handle);
  const folder = emptyFolder();
  writeFileSync(join(folder, "app.pem"), app.key);
  const git = createGitAccess(
    {
      PATH: process.env["PATH"],
      LONGHAUL_GIT_FOLDER: join(folder, "git"),
      LONGHAUL_GITHUB_APP_ID: app.id,
      LONGHAUL_GITHUB_APP_KEY_FILE: join(folder, "app.pem"),
      LONGHAUL_GITHUB_APP_URL: server.origin,
    },
    () => clock,
  );
  const agent = await startAgent({ git, sanitizer: createSanitizer([CANARY], git.madeSecrets) });
  onTestFinished(() => agent.close());
  const url = `${server.origin}/acme/app.git`;
  const session = await agent.start(
    scriptedModel()
      .calls("bash", {
        command: "env; cat .git/config; git remote -v; echo 1 > one; git add -A; git commit -qm One",
      })
      .says("Done."),
    { config: onRepository(url, { push: "never", forge: "github" }) },
  );
  expect(await session.result()).toMatchObject({ status: "completed", delivery: "none" });
  const [first] = app.issued;
  expect(app.issued).toEqual([first]);

  clock = new Date(clock.getTime() + 61 * 60_000);
  expect(app.takes(first?.value ?? "")).toBe(false);
  const output: string[] = [];
  const order = { push: true, pr: "draft", title: "Add one" } as const;
  const row = await sessionRow(agent, session.id);
  expect(await deliverSession(clientServices(agent), row, order, quietOutput(output))).toBe(0);
  expect(place.at(`longhaul/${session.id}`)).toBeDefined();
  expect(forge.requests).toMatchObject([{ title: "Add one", branch: `longhaul/${session.id}` }]);
  expect(app.issued).toHaveLength(2);

  const files = await readWorkspace(agent.database.store.db, session.id);
  const shown = [
    output.join(""),
    JSON.stringify(await session.events()),
    JSON.stringify((await sessionRow(agent, session.id)).config),
    (await resultTexts(agent.database.store, session.id)).join("\n"),
    (files ?? [])
      .map((file) => ("bytes" in file ? Buffer.from(file.bytes).toString("latin1") : ""))
      .join("\n"),
    JSON.stringify(session.model.requests),
    JSON.stringify((await session.handle.fetchHistory()).events?.map((event) => JSON.stringify(event))),
  ].join("\n");
  for (const { value } of app.issued) {
    expect(shown).not.toContain(value);
    expect(shown).not.toContain(Buffer.from(`x-access-token:${value}`).toString("base64").slice(0, 40));
  }
  await checkSession(agent, session);
});
