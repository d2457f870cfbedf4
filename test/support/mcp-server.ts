/** MCP servers for tests, over HTTP on this machine, made with the protocol's own library. */
import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { NodeStreamableHTTPServerTransport, toNodeHandler } from "@modelcontextprotocol/node";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { mcpServersSchema } from "../../activities/config/mcp-settings.ts";
import type { ConfigChanges } from "./run-config.ts";
import { listen } from "./listen.ts";

/** A session's settings with these servers, as in `longhaul.yaml`. */
export const withServers = (servers: object, more: ConfigChanges = {}): ConfigChanges => ({
  mcpServers: mcpServersSchema.parse(servers),
  ...more,
});

export interface TestMcpServer {
  /** Of the requests, in order. */
  readonly bodies: unknown[];
  readonly url: string;
  /** Methods of the requests, in order. */
  readonly methods: string[];
  /** Headers of the newest request. */
  headers(): IncomingMessage["headers"];
  /** Notifies listeners that its tools changed; the older revisions do so by themselves. */
  toolsChanged(): void;
  /** Forgets the sessions of the older revisions. */
  forgetSessions(): void;
}

/** @param add registers its tools @param era `old`: with sessions, as most servers are */
export async function startMcpServer(
  add: (server: McpServer) => void,
  era: "new" | "old" = "new",
): Promise<TestMcpServer> {
  const make = () => {
    const server = new McpServer({ name: "test", version: "1" });
    add(server);
    return server;
  };
  const methods: string[] = [];
  const bodies: unknown[] = [];
  let headers: IncomingMessage["headers"] = {};
  const sessions = new Map<string, NodeStreamableHTTPServerTransport>();
  const handler = createMcpHandler(make, { legacy: "reject" });
  const modern = toNodeHandler(handler);
  type NodeRequest = Parameters<typeof modern>[0];

  async function old(request: IncomingMessage, answer: ServerResponse, body: unknown): Promise<void> {
    const id = request.headers["mcp-session-id"];
    const known = typeof id === "string" ? sessions.get(id) : undefined;
    if (known !== undefined) return known.handleRequest(request, answer, body);
    if (id !== undefined || (body as { method?: string } | undefined)?.method !== "initialize") {
      answer.writeHead(id === undefined ? 400 : 404).end("no such session");
      return;
    }
    const transport = new NodeStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (sessionId) => void sessions.set(sessionId, transport),
    });
    await make().connect(transport);
    await transport.handleRequest(request, answer, body);
  }

  const http = createServer((request, answer) => {
    void (async () => {
      const sent = await text(request);
      const body: unknown = sent === "" ? undefined : JSON.parse(sent);
      headers = request.headers;
      const { method } = (body ?? {}) as { method?: string };
      if (method !== undefined) methods.push(method);
      if (method !== undefined) bodies.push(body);
      await (era === "old" ? old(request, answer, body) : modern(request as NodeRequest, answer, body));
    })();
  });
  return {
    url: `http://127.0.0.1:${await listen(http)}/mcp`,
    methods,
    bodies,
    headers: () => headers,
    toolsChanged: () => handler.notify.toolsChanged(),
    forgetSessions: () => sessions.clear(),
  };
}
