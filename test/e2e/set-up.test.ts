import { randomBytes } from "node:crypto";
import { expect, inject, test } from "vitest";
import { sandboxSpec } from "../../activities/sandbox/sandbox-host.ts";
import { findSession } from "../../activities/store/sessions.ts";
import { packWorkspace } from "../../activities/store/workspace-pack.ts";
import { createSetUps } from "../../activities/workspace/set-up.ts";
import { useAgent } from "../support/agent-harness.ts";
import { checkSession } from "../support/checker/check-session.ts";
import { eventually } from "../support/eventually.ts";
import { runsIn } from "../support/in-container.ts";
import { startKillableSession } from "../support/killable-session.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { removeSetUpImages } from "../support/set-up-images.ts";
import { resultTexts } from "../support/stored.ts";
import { file } from "../support/workspace-file.ts";

const agent = useAgent();
removeSetUpImages(agent);

const settingUp = (commands: readonly string[], optional = false) => ({
  sandbox: { setup: { commands: [...commands], optional, keep: true, timeout: 60_000 } },
});

test("a project is set up before the first step, and again in a resumed session's sandbox", async () => {
  const script = scriptedModel()
    .calls("bash", { command: "cat ~/tool node_modules/made; wc -l < count" })
    .says("Done.")
    .calls("bash", { command: "cat ~/tool node_modules/made; wc -l < count" })
    .says("Done again.");
  const session = await agent.start(script, {
    config: settingUp([
      "echo tool > ~/tool; mkdir -p node_modules; echo made > node_modules/made",
      "sleep 1; echo once >> count",
    ]),
    workspace: await packWorkspace([file("package.json", "{}")]),
  });
  // Another attempt on another worker follows the command that the first one began.
  await session.until("setup:started");
  const row = await findSession(agent.database.store.db, session.id);
  if (row === undefined) throw new Error("The session has no row.");
  const sandbox = await agent.deps.sandboxHost.open(sandboxSpec({ id: session.id, config: row.config }));
  await createSetUps(agent.deps).ensure(row, sandbox, 1);
  expect((await session.result()).status).toBe("completed");
  const again = await session.resume("once more", "more");
  expect((await again.result()).status).toBe("completed");
  const types = (await session.events()).map(({ type }) => type);
  expect(types.indexOf("setup:ended")).toBeLessThan(types.indexOf("step:started"));
  expect(types.filter((type) => type === "setup:started")).toHaveLength(2);
  // `count` is one of the saved files, so the second set-up adds a line.
  expect(await resultTexts(agent.database.store, session.id)).toEqual(["tool\nmade\n1", "tool\nmade\n2"]);
  const [first, , third] = session.model.requests.map((request) => JSON.stringify(request));
  expect(first).toContain("The project's set-up has run in this sandbox");
  expect(third).toContain("The project's set-up has run in this new sandbox");
});

test("a failed set-up ends the run before any model call, with the end of its output", async () => {
  const session = await agent.start(scriptedModel().says("Never asked."), {
    config: settingUp(["echo fine", "echo no such package >&2; exit 7", "touch never"]),
  });
  await expect(session.result()).rejects.toThrow();
  const ended = await session.until("session:ended");
  expect(ended.data).toMatchObject({ status: "failed" });
  expect(ended.data.reason).toMatch(/SetupFailed[^]*exit code 7[^]*no such package/);
  expect(session.model.requests).toEqual([]);
});

test("the model gets a notice of a failed optional set-up, and works", async () => {
  const script = scriptedModel().calls("bash", { command: "echo works" }).says("Done.");
  const session = await agent.start(script, { config: settingUp(["echo broken registry; exit 1"], true) });
  expect((await session.result()).status).toBe("completed");
  const asked = JSON.stringify(session.model.requests[0]);
  expect(asked).toContain("set-up failed in this sandbox");
  expect(asked).toContain("broken registry");
});

test("a set-up's result is cached for the next session on the project, and for no other", async () => {
  const owner = randomBytes(8).toString("hex");
  const packed = (text: string) => packWorkspace([file("web/package.json", "{}"), file("web/main.js", text)]);
  const run = async (text: string, whose = owner, more = "") => {
    const script = scriptedModel()
      .calls("bash", { command: "cat ~/tool web/node_modules/a/made web/main.js; ls -A ~; ls -l ~/exe" })
      .says("Done.");
    const command = `echo tool > ~/tool; install -m 755 /bin/true ~/exe; mkdir -p web/node_modules/a; echo made > web/node_modules/a/made${more}`;
    const session = await agent.start(script, {
      config: { sandbox: { ...settingUp([command]).sandbox, inherited: { setup: whose } } },
      workspace: await packed(text),
    });
    expect((await session.result()).status).toBe("completed");
    const ended = await session.until("setup:ended");
    const [result] = await resultTexts(agent.database.store, session.id);
    return { kept: ended.data.kept, notKept: ended.data.notKept, result };
  };
  const first = await run("one\n");
  expect(first.kept).toBe("made");
  expect(first.result).toMatch(/^tool\nmade\none\n[^]*-rwxr-xr-x 1 agent agent/);
  // Its sources differ, not its package files; nothing of ours is left.
  expect(await run("two\n")).toEqual({
    kept: "taken",
    notKept: undefined,
    result: first.result?.replace("one", "two"),
  });
  expect((await run("two\n", "0123456789abcdef")).kept).toBe("made");
  expect((await run("two\n", owner, "; echo 3 >> web/main.js")).notKept).toBe(
    "it changes files of the workspace: web/main.js",
  );
});

const DOCKERFILE = `FROM ${inject("sandboxImage")}
RUN echo once >> /opt/first
RUN sleep 4.25
`;

test("a worker killed in an image's build or a set-up's command repeats neither, leaves nothing", async () => {
  const session = await startKillableSession(
    agent.database,
    scriptedModel().calls("bash", { command: "cat /opt/first ~/second" }).says("Done."),
    {
      workspace: await packWorkspace([file("Dockerfile", DOCKERFILE)]),
      config: {
        sandbox: {
          build: { dockerfile: "Dockerfile", context: ".", args: {} },
          setup: {
            commands: ["echo once >> ~/second; sleep 4.75"],
            optional: false,
            keep: true,
            timeout: 60_000,
          },
        },
      },
    },
  );
  const { docker } = session.services;
  const sandboxId = async () => (await session.sandbox.inspect()).Id;
  /** Containers in which the engine runs a Dockerfile's commands. */
  const builders = async (id: string) => {
    const all = await docker.listContainers({ all: true });
    return all.filter(({ HostConfig: host }) => host.NetworkMode === `container:${id}`);
  };
  const first = await session.startWorker();
  const id = await eventually("a sandbox", () => sandboxId().catch(() => undefined));
  await eventually("the build's long command", async () => {
    const running = await builders(id);
    return running.some(({ Command: command }) => command.includes("sleep 4.25")) || undefined;
  });
  await first.kill();
  await eventually("the end of the build", async () => (await builders(id)).length === 0 || undefined);

  const second = await session.startWorker();
  const built = await session.until("setup:built");
  expect(built.data).toMatchObject({ kept: "made", output: expect.stringContaining("Using cache") });
  await eventually("the set-up's command", () => runsIn(session.sandbox, "sleep 4.75"));
  await second.kill();

  await session.startWorker();
  expect(await session.handle.result()).toMatchObject({ status: "completed" });
  expect(await resultTexts(agent.database.store, session.id)).toEqual(["once\nonce"]);
  expect(await session.dataOf("setup:built")).toHaveLength(1);
  expect(await session.dataOf("setup:ended")).toHaveLength(1);
  await checkSession(session.services, session, { kills: 2 });
  const mine = await docker.listContainers({ all: true });
  expect(mine.filter(({ Names: names }) => names.some((name) => name.includes(session.id)))).toEqual([]);
  await docker.getImage(`longhaul-setup:${built.data.image}`).remove();
});
