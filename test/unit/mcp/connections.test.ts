/** Connections to servers over HTTP: how long they stay open, and what outlives them. */
import { setTimeout } from "node:timers/promises";
import type { CallToolResult, McpServer } from "@modelcontextprotocol/server";
import { afterEach, expect, test } from "vitest";
import { z } from "zod";
import { mcpServersSchema } from "../../../activities/config/mcp-settings.ts";
import { createConnections, type Connections } from "../../../activities/mcp/connections.ts";
import type { ServerOf } from "../../../activities/mcp/mcp.ts";
import { followTask } from "../../../activities/mcp/tasks.ts";
import { eventually } from "../../support/eventually.ts";
import { startMcpServer } from "../../support/mcp-server.ts";

/** Of a connection that no call uses. */
const IDLE_MS = 40;
const open: Connections[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((connections) => connections.close()));
});

async function connectTo(add: (server: McpServer) => void, era: "new" | "old") {
  const started = await startMcpServer(add, era);
  const connections = createConnections({ variables: {} }, undefined, IDLE_MS);
  open.push(connections);
  const settings = mcpServersSchema.parse({ slow: { url: started.url } })["slow"];
  if (settings === undefined) throw new Error("no settings");
  const server: ServerOf = { sessionId: "s", name: "slow", settings };
  return { connections, server, started, signal: AbortSignal.timeout(30_000) };
}

const done = (text: string): CallToolResult => ({ content: [{ type: "text", text }] });

test.each(["new", "old"] as const)(
  "a call to a server of the %s revision keeps its connection, however long it takes",
  async (era) => {
    const { connections, server, signal } = await connectTo((made) => {
      made.registerTool("work", { inputSchema: { ms: z.number() } }, async ({ ms }) => {
        await setTimeout(ms);
        return done(`${ms} ms`);
      });
    }, era);
    const call = (ms: number) =>
      connections.use(server, signal, (client) => client.callTool({ name: "work", arguments: { ms } }));
    // A shorter call that ends meanwhile does not close it either.
    const [long, short] = await Promise.all([call(5 * IDLE_MS), call(1)]);
    expect([long, short]).toMatchObject([done(`${5 * IDLE_MS} ms`), done("1 ms")]);
    expect(connections.has(server)).toBe(true);
    await eventually("it is closed when no call uses it", () => !connections.has(server));
  },
);

test("a task is followed over new connections when the one that began it is gone", async () => {
  let looks = 0;
  const { connections, server, signal } = await connectTo((made) => {
    made.registerTool("work", {}, () => done("unused"));
    const named = { params: z.looseObject({ taskId: z.string() }) };
    made.server.setRequestHandler("tasks/get", named, ({ taskId }) => {
      looks += 1;
      const state = looks < 4 ? { status: "working" } : { status: "completed", result: done("at last") };
      return { taskId, pollIntervalMs: 5 * IDLE_MS, ...state };
    });
  }, "new");
  const used = new Set<object>();
  const end = await followTask(
    (body) =>
      connections.use(server, signal, (client) => {
        used.add(client);
        return body(client);
      }),
    "task-1",
    { settings: server.settings, answered: [], signal, onProgress: () => undefined },
  );
  expect(end).toMatchObject({ kind: "completed", result: done("at last") });
  expect(used.size).toBeGreaterThan(1);
});
