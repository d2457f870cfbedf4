/** An MCP server whose tool runs as a task (SEP-2663), which any client can fetch by its id. */
import type { CallToolResult, McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";

type State = { readonly status: string } & Readonly<Record<string, unknown>>;

export interface Tasks {
  /** How often a task was begun. */
  begun: number;
  /** Ids that were fetched, in order, and those that were cancelled. */
  readonly looked: string[];
  readonly cancelled: string[];
  readonly updates: unknown[];
  /** The state that a fetch returns, by task; default: working. */
  readonly states: Map<string, State>;
}

const WORKING = { status: "working", statusMessage: "half done" };
const EXTENSION = "io.modelcontextprotocol/tasks";

export const createTasks = (): Tasks => ({
  begun: 0,
  looked: [],
  cancelled: [],
  updates: [],
  states: new Map(),
});

/** Adds the tool `work` and the methods for its tasks. It refuses clients that do not declare support for tasks. */
export function addTasks(server: McpServer, tasks: Tasks): void {
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

/** The result of a finished task. */
export const done = (text: string): CallToolResult => ({ content: [{ type: "text", text }] });
