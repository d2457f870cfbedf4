import { randomBytes } from "node:crypto";
import { expect, inject, it, onTestFinished } from "vitest";
import { devcontainerOfRepository } from "../../client/setup/repository-check.ts";
import { useAgent } from "../support/agent-harness.ts";
import { gitIn, makeRemote, onRepository } from "../support/remotes.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { removeSetUpImages } from "../support/set-up-images.ts";
import { resultTexts } from "../support/stored.ts";

const agent = useAgent();
removeSetUpImages(agent);

it("a repository's devcontainer.json gives the session its image, its set-up and its variables", async () => {
  const dockerfile = `FROM ${inject("sandboxImage")}\nCOPY . /opt/context\nRUN echo built > /opt/made\n`;
  const place = makeRemote({
    ".devcontainer/devcontainer.json": `{
      // ours
      "build": { "dockerfile": "Dockerfile", "context": ".." },
      "postCreateCommand": "git log --oneline | wc -l > ~/commits",
      "containerEnv": { "FLAVOUR": "sour" },
    }`,
    ".devcontainer/Dockerfile": dockerfile,
    "src.txt": "source\n",
  });
  const { build, setup, env } = await devcontainerOfRepository(place.url, undefined, {
    PATH: process.env["PATH"],
  });
  const command = "cat /opt/made /opt/context/src.txt ~/commits; echo $FLAVOUR; echo 1 > one";
  const session = await agent.start(scriptedModel().calls("bash", { command }).says("Done."), {
    config: {
      ...onRepository(place.url),
      sandbox: {
        build,
        env,
        setup: { commands: [...setup], optional: false, keep: false, timeout: 60_000 },
        inherited: { setup: randomBytes(8).toString("hex") },
      },
    },
  });
  const { image } = (await session.until("setup:built")).data;
  onTestFinished(
    () => agent.docker.getImage(`longhaul-setup:${image}`).remove({ force: true }) as Promise<void>,
  );
  expect(await session.result()).toMatchObject({ status: "completed", delivery: "done" });
  expect((await resultTexts(agent.database.store, session.id))[0]?.split("\n")).toEqual([
    "built",
    "source",
    "1",
    "sour",
  ]);
  const branch = `longhaul/${session.id}`;
  expect(gitIn(place.folder, "diff", "--name-only", "main", branch)).toBe("one");
});

it("takes over no packages of a commit outside its history, whatever the branch is called", async () => {
  const owner = randomBytes(8).toString("hex");
  const files = { "package.json": "{}", "postinstall.sh": "echo ours > ~/tool\n" };
  const place = makeRemote(files);
  const run = async () => {
    const session = await agent.start(
      scriptedModel().calls("bash", { command: "cat ~/tool" }).says("Done."),
      {
        config: {
          ...onRepository(place.url, { push: "never" }),
          sandbox: {
            setup: { commands: ["bash ./post*.sh"], optional: false, keep: true, timeout: 60_000 },
            inherited: { setup: owner },
          },
        },
      },
    );
    expect((await session.result()).status).toBe("completed");
    const { kept } = (await session.until("setup:ended")).data;
    return { kept, tool: (await resultTexts(agent.database.store, session.id))[0]?.trim() };
  };
  const first = gitIn(place.folder, "rev-parse", "main");
  place.commit("main", { "postinstall.sh": "echo theirs > ~/tool\n" });
  const theirs = gitIn(place.folder, "rev-parse", "main");
  // A stranger's `main` is checked out in the folder.
  expect(await run()).toEqual({ kept: "taken", tool: "theirs" });
  gitIn(place.folder, "update-ref", "refs/heads/main", first);
  expect(await run()).toEqual({ kept: "taken", tool: "ours" });
  place.commit("main", { "more.txt": "more\n" });
  expect(await run()).toEqual({ kept: "taken", tool: "ours" });
  expect(gitIn(place.folder, "merge-base", theirs, "main")).toBe(first);
});
