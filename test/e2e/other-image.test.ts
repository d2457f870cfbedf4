/** A session on an image of its own choice: one that cannot be a sandbox is refused before anything is paid for. */
import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { useAgent } from "../support/agent-harness.ts";
import { connectDocker } from "../../activities/sandbox/docker/connect-docker.ts";
import { sessionRow } from "../support/client-services.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { resultTexts } from "../support/stored.ts";

const agent = useAgent();
const docker = connectDocker();
const name = `longhaul-other-${randomBytes(4).toString("hex")}`;

/** The sandbox's own image after a command of root's. */
async function makeImage(tag: string, command: string): Promise<void> {
  const base = await docker.createContainer({
    Image: inject("sandboxImage"),
    User: "0:0",
    Entrypoint: ["sh", "-c", command],
    Cmd: [],
    WorkingDir: "/",
  });
  try {
    await base.start();
    await base.wait();
    await base.commit({ repo: name, tag });
  } finally {
    await base.remove({ force: true, v: true });
  }
}

const IMAGES = {
  fit: "touch /opt/mine",
  python: "rm -f $(command -v python3) /usr/bin/python3*",
  place: "rm -rf /workspace; touch /workspace",
};
beforeAll(async () => {
  for (const [tag, command] of Object.entries(IMAGES)) await makeImage(tag, command);
});
afterAll(async () => {
  for (const tag of Object.keys(IMAGES)) await docker.getImage(`${name}:${tag}`).remove({ force: true });
});
const on = (tag: string) => ({ config: { sandbox: { image: `${name}:${tag}` } } });

it.each([
  ["without Python", "python", "SandboxRefused", /python3/],
  ["whose workspace's place is a file", "place", "SandboxRefused", /\/workspace is no folder there/],
  ["that is not there", "gone", "ImageMissing", /gone/],
])("one %s ends the run before a model is asked, and leaves no sandbox", async (_, tag, type, why) => {
  const session = await agent.start(scriptedModel().says("Never."), on(tag));
  await expect(session.result()).rejects.toThrow();
  const { status, error } = await sessionRow(agent, session.id);
  expect([status, error]).toMatchObject(["failed", { type, message: expect.stringMatching(why) as string }]);
  expect(session.model.requests).toEqual([]);
  expect(await agent.deps.sandboxHost.sessions()).not.toContain(session.id);
});

it("one that is fit is used from the first step", async () => {
  const session = await agent.start(
    scriptedModel().calls("bash", { command: "ls /opt/mine" }).says("Done."),
    on("fit"),
  );
  expect((await session.result()).status).toBe("completed");
  expect(await resultTexts(agent.database.store, session.id)).toEqual(["/opt/mine"]);
  expect(session.model.requests).toHaveLength(2);
});
