import { randomBytes } from "node:crypto";
import { expect, inject, it, onTestFinished } from "vitest";
import { devcontainerOfRepository } from "../../client/setup/repository-check.ts";
import { useAgent } from "../support/agent-harness.ts";
import { gitIn, makeRemote, onRepository } from "../support/remotes.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { resultTexts } from "../support/stored.ts";

const agent = useAgent();

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
        ...(build === undefined ? {} : { build }),
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
