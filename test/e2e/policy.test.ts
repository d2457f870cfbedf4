/** The operator's policy against sessions' requests. */
import { expect, it } from "vitest";
import { createSession, findSession } from "../../activities/store/sessions.ts";
import { switchModel } from "../../activities/store/session-settings.ts";
import { carry, createState } from "../../workflows/agent-state.ts";
import { watchSession } from "../../client/watch/watch-session.ts";
import { WORKFLOW_TYPE } from "../../workflows/messages.ts";
import { runConfig, useAgent } from "../support/agent-harness.ts";
import { clientServices, quietOutput, sessionRow, say } from "../support/client-services.ts";
import { call, scriptedModel } from "../support/scripted-model.ts";
import { underPolicy } from "../support/operator-policy.ts";
import { askedAs } from "../support/run-config.ts";

const agent = useAgent();

it("a request beyond a rule is refused when its run opens, by the rule's name, and unpaid", async () => {
  underPolicy(agent, { max: { steps: 10, sessionsPerUser: 1 } });
  const { db } = agent.database.store;
  const withSteps = (maxSteps: number) => ({ limits: { maxSteps } });
  const refusalOf = async (id: string) => {
    const { status, error } = await sessionRow(agent, id);
    return { status, ...(error as { type: string; message: string }) };
  };

  const wide = await agent.start(scriptedModel().says("Never."), { config: withSteps(11) });
  await expect(wide.result()).rejects.toThrow();
  expect(await refusalOf(wide.id)).toMatchObject({ status: "failed", type: "PolicyRefused" });
  const { message } = await refusalOf(wide.id);
  expect(message).toContain("(max.steps): limits.maxSteps is 11");
  expect(message).toContain("Start the task again");
  expect(wide.model.requests).toHaveLength(0);
  // Whoever watches is not sent into the same refusal again.
  const notes: string[] = [];
  const output = { ...quietOutput([]), note: (line: string) => void notes.push(line) };
  const watched = { services: clientServices(agent), sessionId: wide.id, afterSeq: 0, json: false, output };
  expect(await watchSession(watched)).toBe(2);
  expect(notes.join("")).toContain("Its files:");
  expect(notes.join("")).not.toContain("Go on with it");

  // Also when it is resumed; its earlier text stays.
  await say(agent, wide.id, { id: "again", text: "Go on." });
  await expect(agent.client.workflow.getHandle(wide.id).result()).rejects.toThrow();
  expect(wide.model.requests).toHaveLength(0);

  const fits = await agent.start(scriptedModel().says("Done."), { config: withSteps(10) });
  expect((await fits.result()).status).toBe("completed");

  await createSession(agent.database.store, { id: "one-more", task: "Wait.", config: runConfig() });
  const second = await agent.start(scriptedModel().says("Never."), { config: withSteps(10) });
  await expect(second.result()).rejects.toThrow();
  const tooMany = (await refusalOf(second.id)).message;
  expect(tooMany).toContain("(max.sessionsPerUser)");
  expect(tooMany).toContain(`When one of them has ended: longhaul say ${second.id}`);
  expect(await findSession(db, "one-more")).toMatchObject({ status: "active" });
});

it("a run is held to the priority and the tenant that Temporal has, whatever its settings say", async () => {
  underPolicy(agent, { tenants: ["acme"], max: { priority: 2 } });
  const session = await agent.start(scriptedModel().says("Allowed.").says("Never."), {
    config: { priority: 2, tenant: "acme" },
  });
  expect((await session.result()).status).toBe("completed");
  // An input as of a run that continues another one makes it none.
  const carried = carry({ ...createState({}), step: 1 });
  for (const [priority, rule, input] of [
    [{ priorityKey: 1, fairnessKey: "acme" }, "max.priority", {}],
    [{ priorityKey: 2, fairnessKey: "other" }, "tenants", {}],
    [{ priorityKey: 1, fairnessKey: "acme" }, "max.priority", { carried }],
  ] as const) {
    const run = await agent.client.workflow.start(WORKFLOW_TYPE, {
      workflowId: session.id,
      taskQueue: agent.taskQueue,
      args: [input],
      priority,
    });
    await expect(run.result()).rejects.toThrow();
    const { error } = await sessionRow(agent, session.id);
    expect(error).toMatchObject({
      type: "PolicyRefused",
      message: expect.stringContaining(`(${rule})`) as string,
    });
  }
  expect(session.model.requests).toHaveLength(1);
});

it("a model that is not allowed is refused at the start, and before a running session asks it", async () => {
  underPolicy(agent, { models: ["openai/gpt-4o"] });
  const { store } = agent.database;
  const other = askedAs("openai/other");

  const never = await agent.start(scriptedModel().says("Never."), { config: other });
  await expect(never.result()).rejects.toThrow();
  expect((await sessionRow(agent, never.id)).error).toMatchObject({ type: "PolicyRefused" });
  expect(never.model.requests).toHaveLength(0);

  let id = "";
  const running = await agent.start(
    scriptedModel()
      .replies(async () => {
        await switchModel(store, id, { ...(await findSession(store.db, id))!.config, ...other });
        return { parts: [call("bash", { command: "true" })] };
      })
      .says("Never."),
    { named: (given) => (id = given) },
  );
  await expect(running.result()).rejects.toThrow();
  expect((await sessionRow(agent, running.id)).error).toMatchObject({
    type: "PolicyRefused",
    message: expect.stringMatching(
      /\(models\): its model is openai\/other.* --model PROVIDER\/MODEL$/,
    ) as string,
  });
  expect(running.model.requests).toHaveLength(1);
});
