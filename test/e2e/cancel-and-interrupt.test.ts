/** The client's messages on cancel and interrupt: what was kept, and the outcome of the run in question. */
import { describe, expect, it } from "vitest";
import { createSession } from "../../activities/store/sessions.ts";
import { cancelSession, interruptSession } from "../../client/sessions/stop-session.ts";
import type { Services } from "../../client/connect/connection.ts";
import { exitCodes } from "../../client/console/errors.ts";
import { readStatus } from "../../client/sessions/session-status.ts";
import { runConfig, type AgentHarness, type RunningSession, useAgent } from "../support/agent-harness.ts";
import { clientServices, sessionRow, say } from "../support/client-services.ts";
import { eventually } from "../support/eventually.ts";
import { call, scriptedModel, text } from "../support/scripted-model.ts";
import { untilCalls } from "../support/waits.ts";
import { timesAsked } from "../support/scripted-summaries.ts";

/** No heartbeat comes before its timeout: a stop arrives by its announcement, or not at all. */
const agent = useAgent(60_000);

const cancel = async (id: string, services: Services = clientServices(agent)) =>
  cancelSession(services, await sessionRow(agent, id));
const untilCallRuns = ({ id }: RunningSession) => untilCalls(agent.database.store, id, "running");

describe("a cancel", () => {
  it("reports the text that was kept, and the messages that wait", async () => {
    const script = scriptedModel().answers(text("I begin"), { type: "hang" }).says("Heard.");
    const session = await agent.start(script);
    await session.until("llm:chunk");
    const sayIt = (id: string) => say(agent, session.id, { id, text: id });
    expect(await sayIt("mark-a")).toMatchObject({ queued: true });
    // The same id again, in the same run, and while it waits for the next.
    expect(await sayIt("mark-a")).toMatchObject({ queued: false });
    expect(await cancel(session.id)).toMatchObject({
      kept: "partial text",
      step: 1,
      text: "I begin [interrupted]",
      tools: [],
    });
    const status = await readStatus(clientServices(agent), await sessionRow(agent, session.id));
    expect(status).toMatchObject({ status: "cancelled", queue: [{ id: "mark-a", text: "mark-a" }] });
    expect(await sayIt("mark-a")).toMatchObject({ queued: false, position: 1, resumed: false });
    expect(await sayIt("mark-b")).toMatchObject({ queued: true, resumed: true });
    await agent.client.workflow.getHandle(session.id).result();
    expect(timesAsked(session.model, ["mark-a", "mark-b"])).toEqual([1, 1]);
    expect(await sayIt("mark-a")).toMatchObject({ queued: false, position: 0, resumed: false });
    await expect(cancel(session.id)).rejects.toMatchObject({ exitCode: exitCodes.impossible });
  });

  it("reports that the output of the tools in progress was kept", async () => {
    const bash = call("bash", { command: "echo one; sleep 600" });
    const session = await agent.start(scriptedModel().answers(bash));
    await untilCallRuns(session);
    const asked = Date.now();
    expect(await cancel(session.id)).toMatchObject({
      kept: "tools in progress",
      step: 1,
      tools: [{ name: "bash", outcome: "interrupted" }],
    });
    // The benchmark checks the speed; a heartbeat would have taken a minute, and its timeout half of one.
    expect(Date.now() - asked).toBeLessThan(20_000);
  });

  it("follows its own run, and says so if another replaced that", async () => {
    const like = await agent.run(scriptedModel().says("It lends its model."));
    const { id } = agent.adopt(`${like.id}-replaced`, like);
    await createSession(agent.database.store, { id, task: "Do it.", config: runConfig() });
    const options = { workflowId: id, taskQueue: `${agent.taskQueue}-unserved`, args: [{}] };
    const first = await agent.client.workflow.start("codingAgent", options);
    const { taskQueue } = options;
    const cancelled = cancel(id, { ...clientServices(agent), taskQueue });
    cancelled.catch(() => undefined);
    await eventually("the cancel is asked for", async () => {
      const { events } = await first.fetchHistory();
      return events?.some((event) => event.workflowExecutionCancelRequestedEventAttributes);
    });
    await agent.client.workflow.start("codingAgent", {
      ...options,
      workflowIdConflictPolicy: "TERMINATE_EXISTING",
    });
    await expect(cancelled).rejects.toMatchObject({
      exitCode: exitCodes.impossible,
      message: expect.stringContaining("replaced"),
    });
  });

  it("that arrives when the run has just closed is refused", async () => {
    const session = await agent.start(scriptedModel().calls("bash", { command: "sleep 1" }).says("Done."));
    await untilCallRuns(session);
    const services = clientServices(agent);
    // Delays Temporal's client: the run closes between the status check and the request.
    const client = Object.create(agent.client, {
      workflow: {
        value: Object.create(agent.client.workflow, {
          getHandle: {
            value: (id: string, runId?: string) => {
              const handle = agent.client.workflow.getHandle(id, runId);
              return { ...handle, cancel: () => session.result().then(() => handle.cancel()) };
            },
          },
        }),
      },
    }) as AgentHarness["client"];
    const slow = { ...services, temporal: { ...services.temporal, client: async () => client } };
    await expect(cancel(session.id, slow)).rejects.toMatchObject({ exitCode: exitCodes.impossible });
  });
});

it("an interrupt reports what was kept of its step, and the session continues with the message", async () => {
  const script = scriptedModel()
    .answers(text("I begin"), { type: "hang" })
    .answers(call("bash", { command: "sleep 600" }))
    .says("Something else, then.");
  const session = await agent.start(script);
  await session.until("llm:chunk");
  const services = clientServices(agent);
  const interrupt = async (message?: string) =>
    interruptSession(services, await sessionRow(agent, session.id), message);
  expect(await interrupt("mark-a")).toMatchObject({
    acknowledged: true,
    kept: "partial text",
    text: "I begin [interrupted]",
  });
  await untilCallRuns(session);
  expect(await interrupt()).toMatchObject({
    acknowledged: true,
    kept: "tools in progress",
    tools: [{ name: "bash", outcome: "interrupted" }],
  });
  expect(await session.result()).toMatchObject({ result: "Something else, then." });
  expect(timesAsked(session.model, ["mark-a"])).toEqual([1]);
  await expect(interrupt()).rejects.toMatchObject({
    exitCode: exitCodes.impossible,
  });
});
