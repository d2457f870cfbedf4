/** Calls that an MCP server runs as tasks. */
import type { CallToolResult, McpServer } from "@modelcontextprotocol/server";
import type Dockerode from "dockerode";
import { expect, test } from "vitest";
import { z } from "zod";
import { useAgent } from "../support/agent-harness.ts";
import { checkSession } from "../support/checker/check-session.ts";
import { eventually } from "../support/eventually.ts";
import { inContainer } from "../support/in-container.ts";
import { startKillableSession } from "../support/killable-session.ts";
import { mcpAskingProgram } from "../support/mcp-programs.ts";
import { startMcpServer, withServers } from "../support/mcp-server.ts";
import { questionRows, untilWaiting } from "../support/questions.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { callRows, resultTexts } from "../support/stored.ts";

const agent = useAgent();

/** What a server of tasks was asked; and the state that a fetch returns, by task, if it is not working. */
const createTasks = () => ({
  begun: 0,
  /** Ids that were fetched, in order, and those that were cancelled. */
  looked: [] as string[],
  cancelled: [] as string[],
  updates: [] as unknown[],
  states: new Map<string, { readonly status: string } & Readonly<Record<string, unknown>>>(),
});

/** The result of a finished task. */
const done = (text: string): CallToolResult => ({ content: [{ type: "text", text }] });

const ASKS = {
  status: "input_required",
  inputRequests: {
    sure: {
      method: "elicitation/create",
      params: {
        mode: "form",
        message: "Sure?",
        requestedSchema: { type: "object", properties: { sure: { type: "boolean" } }, required: ["sure"] },
      },
    },
  },
};

test("a task is followed to its end and asks people, and its failure and its end are reported", async () => {
  const tasks = createTasks();
  const server = await startMcpServer((made) => addTasks(made, tasks));
  const session = await agent.start(
    scriptedModel()
      .calls("jobs__work", {})
      .calls("jobs__work", {})
      .calls("jobs__work", {})
      .calls("jobs__work", {})
      .says("Done."),
    { config: withServers({ jobs: { url: server.url } }) },
  );
  await eventually("it is followed", () => tasks.looked.length > 2);
  tasks.states.set("task-1", ASKS);
  tasks.states.set("task-2", { status: "completed", result: done("the second") });
  tasks.states.set("task-3", { status: "failed", error: { code: -32_603, message: "out of paper" } });
  tasks.states.set("task-4", { status: "cancelled" });
  await session.until("question:asked", ({ data }) => data.id === "s1c0q1");
  await untilWaiting(agent.database.store, session);
  await session.handle.signal("answer", { question: "s1c0q1", option: "yes" });
  expect(await session.result()).toMatchObject({ status: "completed" });
  expect(tasks.updates).toEqual([{ sure: { action: "accept", content: { sure: true } } }]);
  expect(await resultTexts(agent.database.store, session.id)).toEqual([
    '{"sure":{"action":"accept","content":{"sure":true}}}',
    "the second",
    "The call failed. jobs: its task failed: out of paper.",
    "The call failed. jobs: its task was cancelled.",
  ]);
  expect(tasks.begun).toBe(4);
  expect(await questionRows(agent.database.store, session)).toMatchObject([
    { id: "s1c0q1", kind: "mcp", status: "answered", answer: "yes" },
  ]);
  await checkSession(agent, session);
});

test("a person's stop reaches the server, while a task works and while it waits for an answer", async () => {
  const tasks = createTasks();
  const server = await startMcpServer((made) => addTasks(made, tasks));
  const session = await agent.start(
    scriptedModel().calls("jobs__work", {}).calls("jobs__work", {}).says("Done."),
    { config: withServers({ jobs: { url: server.url } }) },
  );
  await eventually("it is followed", () => tasks.looked.length > 1);
  await session.handle.signal("interrupt", {});
  await eventually("the first is cancelled", () => tasks.cancelled.includes("task-1"));
  await eventually("the second is followed", () => tasks.looked.includes("task-2"));
  tasks.states.set("task-2", ASKS);
  await session.until("question:asked");
  await untilWaiting(agent.database.store, session);
  await session.handle.cancel();
  await expect(session.result()).rejects.toThrow();
  await eventually("the second is cancelled", () => tasks.cancelled.includes("task-2"));
  const [stopped] = await resultTexts(agent.database.store, session.id);
  expect(stopped).toMatch(/user stopped this call\. The server jobs was informed/);
  const rows = await callRows(agent.database.store, session.id);
  expect(rows.map(({ status }) => status)).toEqual(["interrupted", "unknown"]);
  expect(await questionRows(agent.database.store, session)).toMatchObject([{ status: "withdrawn" }]);
});

test("a task outlives the worker that began it: the next one follows the same task", async () => {
  const tasks = createTasks();
  const server = await startMcpServer((made) => addTasks(made, tasks));
  const session = await startKillableSession(
    agent.database,
    scriptedModel().calls("jobs__work", {}).says("Done."),
    { config: withServers({ jobs: { url: server.url } }) },
  );
  const first = await session.startWorker();
  await eventually("it is followed", () => tasks.looked.length > 1, 120_000);
  await first.kill();
  const looks = tasks.looked.length;
  await session.startWorker();
  await eventually("the next one follows it", () => tasks.looked.length > looks + 1, 120_000);
  tasks.states.set("task-1", { status: "completed", result: done("done once") });
  expect(await session.handle.result()).toMatchObject({ status: "completed", steps: 2 });
  expect(tasks.begun).toBe(1);
  expect(new Set(tasks.looked)).toEqual(new Set(["task-1"]));
  expect(await resultTexts(agent.database.store, session.id)).toEqual(["done once"]);
  await checkSession(session.services, session, { kills: 1 });
});

test("the next worker finds an answer sent to a program, and its task: nothing runs twice", async () => {
  const session = await startKillableSession(
    agent.database,
    scriptedModel()
      .calls("box__ask", {})
      .calls("box__work", {})
      .calls("bash", { command: "cat calls.log" })
      .says("Done."),
    { config: withServers({ box: mcpAskingProgram }) },
  );
  const first = await session.startWorker();
  await untilWaiting(agent.database.store, session, 120_000);
  await session.handle.signal("answer", { question: "s1c0q1", text: "this" });
  await eventually("the answer is sent", async () => (await marks(session.sandbox)) === 2, 60_000);
  await first.kill();
  await inContainer(session.sandbox, "touch /tmp/answered");
  const second = await session.startWorker();
  await eventually(
    "the task is followed",
    async () => (await callRows(agent.database.store, session.id))[1]?.mcpTask === "t1",
    120_000,
  );
  await second.kill();
  await inContainer(session.sandbox, "touch /tmp/go");
  await session.startWorker();
  expect(await session.handle.result()).toMatchObject({ status: "completed", steps: 4 });
  const [asked, worked, calls] = await resultTexts(agent.database.store, session.id);
  expect(asked).toBe("this kept");
  expect(worked).toMatch(/^worked in \d+$/);
  expect(calls).toBe("ask\nask\nwork");
  await checkSession(session.services, session, { kills: 2 });
});

const marks = async (sandbox: Dockerode.Container) =>
  (await inContainer(sandbox, "cat /workspace/calls.log")).trim().split("\n").length;

const WORKING = { status: "working", statusMessage: "half done" };
const EXTENSION = "io.modelcontextprotocol/tasks";

/**
 * Adds a tool that runs as a task (SEP-2663), which any client can fetch by its id, and the methods for its tasks. It refuses
 * clients that do not declare support for tasks.
 */
function addTasks(server: McpServer, tasks: ReturnType<typeof createTasks>): void {
  const times = { createdAt: "2026-11-23T09:00:00Z", lastUpdatedAt: "2026-11-23T09:00:00Z", ttlMs: null };
  server.registerTool("work", { description: "Works for long." }, ({ mcpReq }) => {
    if (!JSON.stringify(mcpReq.envelope).includes(EXTENSION))
      throw new Error("the client does not follow tasks");
    if (mcpReq.inputResponses !== undefined) throw new Error("a task is not continued by a call");
    tasks.begun += 1;
    const task = { resultType: "task", taskId: `task-${tasks.begun}`, status: "working", pollIntervalMs: 50 };
    return { ...task, ...times } as unknown as CallToolResult;
  });
  const named = { params: z.looseObject({ taskId: z.string() }) };
  server.server.setRequestHandler("tasks/get", named, ({ taskId }) => {
    tasks.looked.push(taskId);
    return { taskId, ...times, pollIntervalMs: 50, ...(tasks.states.get(taskId) ?? WORKING) };
  });
  server.server.setRequestHandler("tasks/cancel", named, ({ taskId }) => {
    tasks.cancelled.push(taskId);
    return {};
  });
  server.server.setRequestHandler("tasks/update", named, ({ taskId }, { mcpReq }) => {
    const { inputResponses } = mcpReq;
    tasks.updates.push(inputResponses);
    tasks.states.set(taskId, { status: "completed", result: done(JSON.stringify(inputResponses)) });
    return {};
  });
}
