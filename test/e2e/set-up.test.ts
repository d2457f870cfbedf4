import { expect, test } from "vitest";
import type { RunConfig } from "../../activities/config/agent-config.ts";
import { packWorkspace } from "../../activities/store/workspace-pack.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { resultTexts } from "../support/stored.ts";
import { useAgent } from "../support/agent-harness.ts";

const agent = useAgent();

const settingUp =
  (commands: readonly string[], optional = false) =>
  (config: RunConfig): RunConfig => ({
    ...config,
    sandbox: { ...config.sandbox, setup: { commands: [...commands], optional, timeout: 60_000 } },
  });

test("a project is set up before the first step, and again in the sandbox of a session that is resumed", async () => {
  const script = scriptedModel()
    .calls("bash", { command: "cat ~/tool node_modules/made; wc -l < count" })
    .says("Done.")
    .calls("bash", { command: "cat ~/tool node_modules/made; wc -l < count" })
    .says("Done again.");
  const session = await agent.start(script, {
    config: settingUp([
      "echo tool > ~/tool; mkdir -p node_modules; echo made > node_modules/made",
      "echo once >> count",
    ]),
    workspace: await packWorkspace([
      { kind: "file", path: "package.json", mode: 0o644, bytes: Buffer.from("{}") },
    ]),
  });
  expect((await session.result()).status).toBe("completed");
  const again = await agent.client.workflow.signalWithStart("codingAgent", {
    workflowId: session.id,
    taskQueue: agent.taskQueue,
    args: [{}],
    signal: "guidance",
    signalArgs: [{ id: "more", text: "once more" }],
  });
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

test("a set-up that fails ends the run before anything is paid, with the end of its output", async () => {
  const session = await agent.start(scriptedModel().says("Never asked."), {
    config: settingUp(["echo fine", "echo no such package >&2; exit 7", "touch never"]),
  });
  await expect(session.result()).rejects.toThrow();
  const ended = await session.until("session:ended");
  expect(ended.data).toMatchObject({ status: "failed" });
  expect(ended.data.reason).toMatch(/SetupFailed[^]*exit code 7[^]*no such package/);
  expect(session.model.requests).toEqual([]);
});

test("the model is told of an optional set-up that failed, and works", async () => {
  const script = scriptedModel().calls("bash", { command: "echo works" }).says("Done.");
  const session = await agent.start(script, { config: settingUp(["echo broken registry; exit 1"], true) });
  expect((await session.result()).status).toBe("completed");
  const asked = JSON.stringify(session.model.requests[0]);
  expect(asked).toContain("set-up failed in this sandbox");
  expect(asked).toContain("broken registry");
});
