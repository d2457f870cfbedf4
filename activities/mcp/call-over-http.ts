/** A call to a server over HTTP. */
import type { CallToolResult, Client } from "@modelcontextprotocol/client";
import { LeaveRunning } from "../tools/failure.ts";
import type { ToolContext, ToolResult } from "../tools/tool.ts";
import { failedCall, unknownEnd } from "./call-outcome.ts";
import type { HttpServers } from "./http-servers.ts";
import type { McpCall } from "./mcp.ts";
import { isStaleSession, reasonOf } from "./mcp-failure.ts";
import { callTool } from "./protocol-client.ts";
import { toolResult } from "./results.ts";

const SENT = "sent";

/**
 * One that may have been sent by an attempt that was lost is not sent again, unless it is repeatable. A server of the older
 * revisions that has forgotten our session refuses the call, so that one is sent again in a new session.
 */
export async function callOverHttp(
  http: HttpServers,
  call: McpCall,
  context: ToolContext,
): Promise<ToolResult> {
  const { server, isRepeatable } = call;
  const { signal } = context;
  if (context.resumed && call.state === SENT && !isRepeatable)
    return unknownEnd(call, "the worker that made it was lost before the answer was stored");
  let client: Client;
  try {
    client = await http.client(server, signal);
  } catch (error) {
    if (signal.reason instanceof LeaveRunning) throw signal.reason;
    return failedCall(call, error, { isSent: false, isStopped: signal.aborted });
  }
  if (!isRepeatable) await call.keepState(SENT);
  try {
    return await toolResult(await sent(http, call, client, context), context);
  } catch (error) {
    if (signal.reason instanceof LeaveRunning) throw signal.reason;
    return failedCall(call, error, { isSent: !isUnsent(error), isStopped: signal.aborted });
  }
}

async function sent(
  http: HttpServers,
  { server, entry, input, onReconnected }: McpCall,
  client: Client,
  { signal, onProgress }: ToolContext,
): Promise<CallToolResult> {
  const limits = { settings: server.settings, signal, onProgress: (note: string) => onProgress(0, note) };
  try {
    return await callTool(client, entry, input, limits);
  } catch (error) {
    if (!isStaleSession(error)) throw error;
    const fresh = await http.client(server, signal, client);
    await onReconnected();
    return callTool(fresh, entry, input, limits);
  }
}

/** Nobody took the request. */
const isUnsent = (error: unknown): boolean => /ECONNREFUSED|ENOTFOUND|EAI_AGAIN/.test(reasonOf(error));
