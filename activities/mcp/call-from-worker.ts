/** A call to a server over HTTP, or to one of the worker's own programs. */
import type { Client } from "@modelcontextprotocol/client";
import type { ToolContext, ToolResult } from "../tools/tool.ts";
import { unknownEnd, withNotice } from "./call-outcome.ts";
import { converse } from "./converse.ts";
import type { Connections } from "./connections.ts";
import type { McpCall } from "./mcp.ts";
import { isStaleSession, reasonOf } from "./mcp-failure.ts";
import { isListDue, listTools } from "./protocol-client.ts";

const SENT = "sent";

/**
 * A call that a lost attempt may have sent is not sent again, unless it is repeatable. A server of the older revisions that has
 * forgotten our session refuses the call, which is then sent again in a new session.
 */
export async function callFromWorker(
  connections: Connections,
  call: McpCall,
  context: ToolContext,
): Promise<ToolResult> {
  const { server, isRepeatable, state, task } = call;
  const { signal } = context;
  if (state.sent === SENT && task === undefined && !isRepeatable)
    return unknownEnd(call, "the worker that made it was lost before the answer was stored");
  const isRestarted = server.settings.where === "worker" && !connections.has(server);
  let isConnected = false;
  async function exchange<T>(body: (client: Client) => Promise<T>): Promise<T> {
    let used: Client | undefined;
    try {
      return await connections.use(server, signal, (client) => {
        used = client;
        isConnected = true;
        lookAtList(client, call);
        return body(client);
      });
    } catch (error) {
      if (used === undefined || !isStaleSession(error)) throw error;
      return connections.use(
        server,
        signal,
        async (fresh) => {
          await call.onReconnected();
          return body(fresh);
        },
        used,
      );
    }
  }
  const result = await converse(call, context, {
    mark: isRepeatable ? undefined : SENT,
    exchange: (_name, body) => exchange(body),
    request: exchange,
    // No server received the request.
    isUnsent: (error) => !isConnected || /ECONNREFUSED|ENOTFOUND|EAI_AGAIN/.test(reasonOf(error)),
  });
  return isRestarted && isConnected ? withNotice(server.name, result) : result;
}

/** In parallel with the call, which does not wait for it. */
function lookAtList(client: Client, { server, onListed }: McpCall): void {
  if (!isListDue(client)) return;
  const options = { timeout: server.settings.timeout, signal: AbortSignal.timeout(server.settings.timeout) };
  listTools(client, options)
    .then(onListed)
    .catch(() => undefined);
}
